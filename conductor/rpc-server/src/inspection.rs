//! A look at what the broker has under our names, for a person: nothing is created, nothing consumed.
//!
//! RabbitMQ does not tell a queue's arguments over AMQP. It tells whether a name exists (a passive declaration), and
//! whether a declaration equals what exists (an active one, which then changes nothing).

use lapin::protocol::AMQPSoftError;

use magnum_rpc::rabbit::{Opener, create, has_code, option_to_align};
use magnum_rpc::{Declaration, RpcOptions, TransportError, TransportUrl};

/// What exists on a broker under the name of a queue that we would declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueInspection {
    /// No queue.
    Missing,
    /// A queue with the arguments that we would declare.
    AsConfigured,
    /// A queue with other arguments, and the option that would align them.
    Mismatch(&'static str),
}

/// What the broker has of these declarations, by name: for a person who wants to know before a service is started.
/// Connects, logs in, and changes nothing. Empty for `fake://`, which has no broker.
///
/// # Errors
/// When the options cannot be used, or [`TransportError::Unreachable`]: no host lets us in.
pub async fn inspect(
    options: &RpcOptions,
    connection_name: &str,
    declarations: &[Declaration],
) -> Result<Vec<(String, QueueInspection)>, TransportError> {
    let TransportUrl::Rabbit(url) = &options.url else {
        return Ok(Vec::new());
    };
    let opener = Opener::new(url.clone(), &options.rabbit, connection_name)?;
    look_at_all(&opener, declarations)
        .await
        .map_err(TransportError::Unreachable)
}

/// What is there of these declarations, by name. An error is one line without credentials.
async fn look_at_all(
    opener: &Opener,
    declarations: &[Declaration],
) -> Result<Vec<(String, QueueInspection)>, String> {
    let connection = opener
        .open_once("inspection")
        .await
        .map_err(|error| error.to_string())?;
    let mut seen = Vec::new();
    for declaration in declarations {
        let name = match declaration {
            Declaration::Exchange(exchange) => &exchange.name,
            Declaration::Queue(queue) => &queue.name,
            Declaration::Prefetch(_) | Declaration::Bind { .. } | Declaration::Consume { .. } => continue,
        };
        let found = look(&connection, declaration).await;
        seen.push((name.clone(), found.map_err(|error| error.to_string())?));
    }
    // Whatever it answers, it is over.
    let _closed = connection.close(200, "looked".into()).await;
    Ok(seen)
}

async fn look(connection: &lapin::Connection, declaration: &Declaration) -> lapin::Result<QueueInspection> {
    // A refusal costs the channel, so each question has its own.
    let channel = connection.create_channel().await?;
    match create(&channel, declaration, true).await {
        Ok(()) => {}
        Err(error) if has_code(&error, &AMQPSoftError::NOTFOUND) => return Ok(QueueInspection::Missing),
        Err(error) => return Err(error),
    }
    let channel = connection.create_channel().await?;
    match create(&channel, declaration, false).await {
        Ok(()) => Ok(QueueInspection::AsConfigured),
        Err(error) if has_code(&error, &AMQPSoftError::PRECONDITIONFAILED) => {
            Ok(QueueInspection::Mismatch(option_to_align(&error.to_string())))
        }
        Err(error) => Err(error),
    }
}
