//! One session of a listener: an open connection, its channel and its consumers.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Fuse, FusedFuture as _};
use futures::stream::{BoxStream, SelectAll, StreamExt, once};
use lapin::options::QueueDeleteOptions;
use lapin::types::DeliveryTag;
use lapin::{Channel, Connection, Consumer, Event};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::commands::{Commands, Stopped};
use super::raw_message::raw_message;
use crate::delivery::Delivery;
use crate::message::RawMessage;
use crate::rabbit::declare::{Declarer, Mismatches, cancel, consume};
use crate::rabbit::listener::setup::{SetupError, answered};
use crate::rabbit::open::{explain, short};
use crate::rabbit::settle::{Ledger, Settlement, Settler, send_frames};
use crate::rabbit::streams::Offsets;
use crate::topology::Declaration;
use crate::transport::ListenSpec;

/// Time limit of an orderly close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a session ended.
pub(super) enum End {
    /// The listener is stopped.
    Stopped(Stopped),
    /// The session was lost, for a reason in words for the log: another one is needed.
    Lost(String),
}

/// What the consumers and the connection of a session yield.
enum Item {
    Message(DeliveryTag, Box<RawMessage>),
    /// The connection or a channel failed.
    Failed(String),
    /// A consumer was cancelled, by us or by the broker.
    ConsumerEnded,
}

/// An open connection with its consumers.
pub(super) struct Session<'a> {
    spec: &'a ListenSpec,
    offsets: &'a Offsets,
    /// Those of the spec, by the present names of its queues.
    declarations: Vec<Declaration>,
    connection: Connection,
    channel: Channel,
    items: SelectAll<BoxStream<'static, Item>>,
    /// Number of active consumers: all, or none while paused.
    active: usize,
    /// Number of consumers that we have cancelled and whose end `items` has not yielded yet.
    cancelled: usize,
    settlements: Settlements,
}

impl<'a> Session<'a> {
    /// Declares, and consumes unless `paused`.
    ///
    /// # Errors
    /// The broker reports one, or does not answer.
    pub(super) async fn open(
        connection: Connection,
        spec: &'a ListenSpec,
        mismatches: &Mismatches,
        offsets: &'a Offsets,
        paused: bool,
    ) -> Result<Self, SetupError> {
        let declarations = spec.own_queues.present(&spec.declarations);
        let channel = declare(&connection, spec, &declarations, mismatches).await?;
        let mut items = SelectAll::new();
        items.push(failures_of(&connection));
        let mut session = Self {
            spec,
            offsets,
            declarations,
            connection,
            channel,
            items,
            active: 0,
            cancelled: 0,
            settlements: Settlements::new(),
        };
        session.consume_unless(paused).await?;
        Ok(session)
    }

    /// Forwards deliveries and obeys commands until the session is lost or the listener is stopped; then closes.
    pub(super) async fn run(mut self, out: &mpsc::UnboundedSender<Delivery>, commands: &mut Commands) -> End {
        // A command may have come while the session was being opened.
        let end = match self.consume_unless(commands.paused).await {
            Ok(()) => self.serve(out, commands).await,
            Err(error) => End::Lost(error.to_string()),
        };
        let delete = match (&end, &self.spec.delete_at_stop) {
            (End::Stopped(_), Some(queue)) => Some(self.spec.own_queues.present_name(queue)),
            _ => None,
        };
        // The broker may be gone; then there is nothing to close.
        let _timed_out = timeout(CLOSE_TIMEOUT, self.close(delete.as_deref())).await;
        end
    }

    async fn serve(&mut self, out: &mpsc::UnboundedSender<Delivery>, commands: &mut Commands) -> End {
        loop {
            let step = tokio::select! {
                () = out.closed() => return End::Stopped(Stopped::silently()),
                change = commands.next() => match change {
                    Ok(change) => {
                        let consuming = self.consume_unless(commands.paused).await;
                        change.confirm();
                        consuming.map_err(|error| error.to_string())
                    }
                    Err(stopped) => return End::Stopped(stopped),
                },
                sent = self.settlements.sent_or_due(&self.channel) => sent,
                Some(item) = self.items.next() => self.handle(item, out),
            };
            if let Err(reason) = step {
                return End::Lost(reason);
            }
        }
    }

    /// Forwards a message. Everything else may mean that the session is lost: that is the error.
    fn handle(&mut self, item: Item, out: &mpsc::UnboundedSender<Delivery>) -> Result<(), String> {
        match item {
            Item::Message(tag, message) => {
                if let Some(offset) = message.stream_offset {
                    self.offsets.came(&message.queue, offset);
                }
                // A receiver that has just gone shows at `out.closed()`; the broker takes the delivery back by itself.
                let _gone = out.send(self.settlements.lend(tag, *message));
                Ok(())
            }
            Item::Failed(reason) => Err(reason),
            Item::ConsumerEnded if self.cancelled > 0 => {
                self.cancelled -= 1;
                Ok(())
            }
            Item::ConsumerEnded => {
                self.offsets.forget();
                Err("the broker cancelled a consumer".to_owned())
            }
        }
    }

    /// Starts all consumers, own queues first, or cancels them if `paused`. Messages that the broker has sent to a cancelled consumer
    /// are still forwarded.
    ///
    /// A queue that deletes itself would go with its last consumer, and its messages with it: there consumers stay, and the
    /// limit of what they may hold is all that holds the broker back.
    async fn consume_unless(&mut self, paused: bool) -> Result<(), SetupError> {
        let declarations = &self.declarations;
        let paused = paused && !declarations.iter().any(deletes_itself);
        if paused && self.active > 0 {
            self.cancelled += std::mem::take(&mut self.active);
            answered(None, cancel(&self.channel, declarations)).await?;
        } else if !paused && self.active == 0 {
            let mut consumers = Vec::new();
            let mut declarations = self.offsets.resume(declarations).into_owned();
            // What others may have is not taken before the rest is known to be served: a broker that hangs would keep it.
            declarations.sort_by_key(|declaration| !self.spec.own_queues.has(declaration.queue()));
            for declaration in &declarations {
                let consuming = consume(&self.channel, declaration);
                consumers.extend(answered(declaration.queue(), consuming).await?);
            }
            self.active = consumers.len();
            self.items.extend(consumers.into_iter().map(items_of));
        }
        Ok(())
    }

    /// Sends the settlements that are due, deletes the queue if there is one to delete, and closes the connection.
    async fn close(mut self, delete: Option<&str>) {
        self.settlements.flush(&self.channel).await;
        if let Some(queue) = delete.and_then(|queue| short(queue).ok()) {
            let _lost = self
                .channel
                .queue_delete(queue, QueueDeleteOptions::default())
                .await;
        }
        let _lost = self.connection.close(200, "OK".into()).await;
    }
}

/// The settlements of a session's deliveries, on their way from the handlers to the broker.
struct Settlements {
    ledger: Ledger,
    receiver: mpsc::UnboundedReceiver<Settlement>,
    sender: mpsc::UnboundedSender<Settlement>,
    /// The round of frames that is being sent; the next one gathers meanwhile.
    sending: Fuse<BoxFuture<'static, lapin::Result<()>>>,
}

impl Settlements {
    fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            ledger: Ledger::default(),
            receiver,
            sender,
            sending: Fuse::terminated(),
        }
    }

    /// A delivery for a handler.
    fn lend(&mut self, tag: DeliveryTag, message: RawMessage) -> Delivery {
        self.ledger.lent(tag);
        let settler = Settler {
            tag,
            settlements: self.sender.clone(),
        };
        Delivery::new(Box::new(settler), message)
    }

    /// Waits until the round in progress is sent, or, if there is none, until a settlement is due, and begins a round
    /// with it. Can be cancelled without loss.
    async fn sent_or_due(&mut self, channel: &Channel) -> Result<(), String> {
        if !self.sending.is_terminated() {
            return (&mut self.sending).await.map_err(|error| explain(&error));
        }
        // The sender is here, too: the channel never closes.
        let first = self.receiver.recv().await;
        self.begin_round(channel, first);
        Ok(())
    }

    /// Begins to send everything that is due by now.
    fn begin_round(&mut self, channel: &Channel, first: Option<Settlement>) {
        let mut due: Vec<Settlement> = first.into_iter().collect();
        while let Ok(next) = self.receiver.try_recv() {
            due.push(next);
        }
        let frames = self.ledger.settle(&due);
        self.sending = send_frames(channel.clone(), frames).boxed().fuse();
    }

    /// Sends everything that is due. A lost connection is not reported: the broker redelivers.
    async fn flush(&mut self, channel: &Channel) {
        if !self.sending.is_terminated() {
            let _lost = (&mut self.sending).await;
        }
        self.begin_round(channel, None);
        let _lost = (&mut self.sending).await;
    }
}

fn deletes_itself(declaration: &Declaration) -> bool {
    matches!(declaration, Declaration::Queue(queue) if queue.auto_delete)
}

async fn declare(
    connection: &Connection,
    spec: &ListenSpec,
    declarations: &[Declaration],
    mismatches: &Mismatches,
) -> Result<Channel, SetupError> {
    let mut declarer = answered(None, Declarer::new(connection, mismatches)).await?;
    let sets_prefetch = declarations
        .iter()
        .any(|declaration| matches!(declaration, Declaration::Prefetch(_)));
    if !sets_prefetch && spec.default_prefetch > 0 {
        answered(None, declarer.prefetch(spec.default_prefetch)).await?;
    }
    for binding in spec.own_queues.replaced(&spec.declarations) {
        answered(binding.queue(), declarer.unbind(&binding)).await?;
    }
    for declaration in declarations {
        answered(declaration.queue(), declarer.declare(declaration)).await?;
    }
    Ok(declarer.into_channel())
}

/// The failures of a connection: without consumers, nothing else would show them.
fn failures_of(connection: &Connection) -> BoxStream<'static, Item> {
    let events = connection.events_listener();
    events
        .filter_map(async |event| match event {
            Event::Error(error) => Some(Item::Failed(explain(&error))),
            _ => None,
        })
        .boxed()
}

/// The messages of a consumer, and then its end.
fn items_of(consumer: Consumer) -> BoxStream<'static, Item> {
    let queue = consumer.queue().to_string();
    consumer
        .map(move |delivery| match delivery {
            Ok(delivery) => Item::Message(delivery.delivery_tag, Box::new(raw_message(delivery, &queue))),
            Err(error) => Item::Failed(explain(&error)),
        })
        .chain(once(async { Item::ConsumerEnded }))
        .boxed()
}
