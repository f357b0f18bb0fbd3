//! One listener: its connection, its consumers, and its return after a loss.
//!
//! A supervisor task owns the connection. It opens, declares, consumes, forwards deliveries, obeys orders, and
//! on any loss starts over with the same declarations, the same fanout queue name included. It ends only on
//! order or when nobody receives any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Fuse, FusedFuture as _};
use futures::stream::{BoxStream, SelectAll, StreamExt, once};
use lapin::options::QueueDeleteOptions;
use lapin::types::{AMQPValue, DeliveryTag};
use lapin::{Channel, Connection, Consumer, Event};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::declare::{Declarer, Mismatches, cancel, consume};
use super::hosts::HostOrder;
use super::open::{Opener, explain, short};
use super::settle::{Ledger, Settlement, Settler, tell};
use super::streams::{self, Offsets};
use super::{ListenerCounts, reconnect};
use crate::delivery::Delivery;
use crate::message::RawMessage;
use crate::options::RabbitOptions;
use crate::topology::Declaration;
use crate::transport::{ListenCommand, ListenSpec};

/// How long a goodbye to the broker may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long declaring and consuming may take. A broker that has just come back can leave a declaration of a
/// quorum queue unanswered for ever; asked again on a new connection, it answers.
const SETUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Who is to be told that the listener has stopped.
type Stopped = Option<oneshot::Sender<()>>;

/// Why a session with the broker ended.
enum End {
    /// On order.
    Stopped(Stopped),
    /// Start over.
    Lost(String),
}

/// What comes out of a consumer.
enum Item {
    Message(DeliveryTag, Box<RawMessage>),
    Broken(String),
    /// Cancelled, by us or by the broker.
    Over,
}

pub(super) struct Supervisor {
    opener: Arc<Opener>,
    options: RabbitOptions,
    spec: ListenSpec,
    mismatches: Arc<Mismatches>,
    counts: Arc<ListenerCounts>,
    offsets: Offsets,
}

/// Orders, and whether consuming is paused by one of them.
struct Orders {
    commands: mpsc::UnboundedReceiver<ListenCommand>,
    stop: CancellationToken,
    paused: bool,
}

/// What comes out of all consumers of a session, and of its connection.
type Items = SelectAll<BoxStream<'static, Item>>;

/// An open connection with its consumers.
struct Session {
    connection: Connection,
    channel: Channel,
    items: Items,
    /// Consumers at work.
    consumers: usize,
    /// Consumers that were cancelled on order, and whose end has not come out of `items` yet.
    ending: usize,
    ends: Ends,
}

/// What became of the session's deliveries.
struct Ends {
    ledger: Ledger,
    settlements: mpsc::UnboundedReceiver<Settlement>,
    settler: mpsc::UnboundedSender<Settlement>,
    /// Being told to the broker; the next round gathers meanwhile.
    telling: Fuse<BoxFuture<'static, lapin::Result<()>>>,
}

impl Supervisor {
    pub(super) fn new(
        opener: Arc<Opener>,
        options: RabbitOptions,
        spec: ListenSpec,
        mismatches: Arc<Mismatches>,
        counts: Arc<ListenerCounts>,
    ) -> Self {
        Self {
            opener,
            options,
            spec,
            mismatches,
            counts,
            offsets: Offsets::default(),
        }
    }

    pub(super) async fn run(
        self,
        out: mpsc::UnboundedSender<Delivery>,
        commands: mpsc::UnboundedReceiver<ListenCommand>,
        stop: CancellationToken,
        ready: oneshot::Sender<()>,
    ) {
        let mut orders = Orders {
            commands,
            stop,
            paused: false,
        };
        self.counts.down.fetch_add(1, Ordering::Relaxed);
        let stopped = self.live(&out, &mut orders, ready).await;
        self.counts.down.fetch_sub(1, Ordering::Relaxed);
        if let Some(done) = stopped {
            let _gone = done.send(());
        }
    }

    /// Sessions, one after the other, until stopped. Counted as down whenever it is not inside a session.
    async fn live(
        &self,
        out: &mpsc::UnboundedSender<Delivery>,
        orders: &mut Orders,
        ready: oneshot::Sender<()>,
    ) -> Stopped {
        let mut ready = Some(ready);
        let mut hosts = self.opener.host_order();
        let mut failures: u32 = 0;
        let mut down_since = Instant::now();
        loop {
            let opened = match orders.obey_during(self.open(orders.paused, &mut hosts)).await {
                Ok(opened) => opened,
                Err(stopped) => return stopped,
            };
            let reason = match opened {
                Ok(session) => {
                    if failures > 0 {
                        let seconds = down_since.elapsed().as_secs_f64();
                        tracing::info!(purpose = self.spec.purpose, down_s = seconds, "consuming again");
                    }
                    failures = 0;
                    if let Some(ready) = ready.take() {
                        let _gone = ready.send(());
                    }
                    self.counts.up.fetch_add(1, Ordering::Relaxed);
                    self.counts.down.fetch_sub(1, Ordering::Relaxed);
                    let end = self.session(session, out, orders).await;
                    self.counts.down.fetch_add(1, Ordering::Relaxed);
                    self.counts.up.fetch_sub(1, Ordering::Relaxed);
                    down_since = Instant::now();
                    match end {
                        End::Stopped(stopped) => return stopped,
                        End::Lost(reason) => reason,
                    }
                }
                Err(reason) => reason,
            };
            failures = failures.saturating_add(1);
            let pause = reconnect::pause(&self.options, failures);
            if failures.is_power_of_two() {
                let seconds = down_since.elapsed().as_secs_f64();
                tracing::warn!(purpose = self.spec.purpose, %reason, down_s = seconds, "no connection to the broker; trying again");
            }
            if let Err(stopped) = orders.obey_during(sleep(pause)).await {
                return stopped;
            }
        }
    }

    /// Connects, declares, and consumes unless `paused`. What is ordered meanwhile is left to the session.
    async fn open(&self, paused: bool, hosts: &mut HostOrder) -> Result<Session, String> {
        let opened = self.opener.open(self.spec.purpose, hosts).await;
        let connection = opened.map_err(|error| error.to_string())?;
        let channel = answered(self.declare(&connection)).await?;
        let mut items = SelectAll::new();
        items.push(losses_of(&connection));
        let mut session = Session {
            connection,
            channel,
            items,
            consumers: 0,
            ending: 0,
            ends: Ends::new(),
        };
        self.consume_unless(paused, &mut session).await?;
        Ok(session)
    }

    async fn declare(&self, connection: &Connection) -> lapin::Result<Channel> {
        let declarations = &self.spec.declarations;
        let mut declarer = Declarer::new(connection, &self.mismatches).await?;
        let limited = declarations.iter().any(|d| matches!(d, Declaration::Prefetch(_)));
        if !limited && self.spec.default_prefetch > 0 {
            declarer.prefetch(self.spec.default_prefetch).await?;
        }
        for declaration in declarations {
            declarer.declare(declaration).await?;
        }
        Ok(declarer.into_channel())
    }

    /// Forwards deliveries and obeys orders until one of them ends it.
    async fn session(
        &self,
        mut session: Session,
        out: &mpsc::UnboundedSender<Delivery>,
        orders: &mut Orders,
    ) -> End {
        let end = loop {
            if let Err(reason) = self.consume_unless(orders.paused, &mut session).await {
                break End::Lost(reason);
            }
            tokio::select! {
                () = orders.stop.cancelled() => break End::Stopped(None),
                () = out.closed() => break End::Stopped(None),
                order = orders.commands.recv() => match order {
                    None => break End::Stopped(None),
                    Some(ListenCommand::Stop(done)) => break End::Stopped(Some(done)),
                    Some(ListenCommand::Pause(done)) => {
                        orders.paused = true;
                        // A loss shows at the next turn, too.
                        let _lost = self.consume_unless(true, &mut session).await;
                        let _gone = done.send(());
                    }
                    Some(ListenCommand::Resume(done)) => {
                        orders.paused = false;
                        let resumed = self.consume_unless(false, &mut session).await;
                        let _gone = done.send(());
                        if let Err(reason) = resumed {
                            break End::Lost(reason);
                        }
                    }
                },
                told = &mut session.ends.telling => if let Err(error) = told {
                    break End::Lost(explain(&error));
                },
                Some(first) = session.ends.settlements.recv(), if session.ends.telling.is_terminated() => {
                    session.ends.tell(&session.channel, Some(first));
                }
                Some(item) = session.items.next() => match item {
                    Item::Message(tag, message) => {
                        if let Some(offset) = message.stream_offset {
                            self.offsets.came(&message.queue, offset);
                        }
                        // A receiver that has just gone shows at `out.closed()`; the delivery returns by itself.
                        let _gone = out.send(session.ends.lend(tag, *message));
                    }
                    Item::Broken(reason) => break End::Lost(reason),
                    Item::Over if session.ending > 0 => session.ending -= 1,
                    Item::Over => {
                        self.offsets.forget();
                        break End::Lost("the broker cancelled a consumer".to_owned());
                    }
                },
            }
        };
        let delete = match &end {
            End::Stopped(_) => self.spec.delete_at_stop.as_deref(),
            End::Lost(_) => None,
        };
        // The broker may be gone; then there is nothing to close.
        let _late = timeout(CLOSE_TIMEOUT, session.close(delete)).await;
        end
    }
}

impl Session {
    /// Tells what is settled, and says goodbye.
    async fn close(mut self, delete: Option<&str>) {
        if !self.ends.telling.is_terminated() {
            let _lost = (&mut self.ends.telling).await;
        }
        self.ends.tell(&self.channel, None);
        let _lost = (&mut self.ends.telling).await;
        if let Some(queue) = delete.and_then(|queue| short(queue).ok()) {
            let _lost = self
                .channel
                .queue_delete(queue, QueueDeleteOptions::default())
                .await;
        }
        let _lost = self.connection.close(200, "OK".into()).await;
    }
}

impl Ends {
    fn new() -> Self {
        let (settler, settlements) = mpsc::unbounded_channel();
        Self {
            ledger: Ledger::default(),
            settlements,
            settler,
            telling: Fuse::terminated(),
        }
    }

    /// A delivery to be handed out.
    fn lend(&mut self, tag: DeliveryTag, message: RawMessage) -> Delivery {
        self.ledger.lent(tag);
        let settler = Settler {
            tag,
            settlements: self.settler.clone(),
        };
        Delivery::new(Box::new(settler), message)
    }

    /// Begins to tell everything that is settled by now.
    fn tell(&mut self, channel: &Channel, first: Option<Settlement>) {
        let mut settled: Vec<Settlement> = first.into_iter().collect();
        while let Ok(next) = self.settlements.try_recv() {
            settled.push(next);
        }
        let frames = self.ledger.settle(&settled);
        self.telling = tell(channel.clone(), frames).boxed().fuse();
    }
}

impl Supervisor {
    /// Brings the consumers to what the orders say: all of them, or none while paused. What cancelled consumers
    /// had been sent still comes out of the session.
    async fn consume_unless(&self, paused: bool, session: &mut Session) -> Result<(), String> {
        let declarations = &self.spec.declarations;
        if paused && session.consumers > 0 {
            session.ending += std::mem::take(&mut session.consumers);
            answered(cancel(&session.channel, declarations)).await?;
        } else if !paused && session.consumers == 0 {
            let consumers = {
                let declarations = self.offsets.resume(declarations);
                answered(consume(&session.channel, &declarations)).await?
            };
            session.consumers = consumers.len();
            session.items.extend(consumers.into_iter().map(items_of));
        }
        Ok(())
    }
}

/// The broker's answer, or why there is none.
async fn answered<T>(asked: impl Future<Output = lapin::Result<T>>) -> Result<T, String> {
    match timeout(SETUP_TIMEOUT, asked).await {
        Ok(answer) => answer.map_err(|error| explain(&error)),
        Err(_) => Err("the broker did not answer within 10 s".to_owned()),
    }
}

impl Orders {
    /// Runs `work` while obeying orders; a stop ends it.
    async fn obey_during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stopped> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return Ok(result),
                () = self.stop.cancelled() => return Err(None),
                order = self.commands.recv() => match order {
                    None => return Err(None),
                    Some(ListenCommand::Stop(done)) => return Err(Some(done)),
                    Some(ListenCommand::Pause(done)) => {
                        self.paused = true;
                        let _gone = done.send(());
                    }
                    Some(ListenCommand::Resume(done)) => {
                        self.paused = false;
                        let _gone = done.send(());
                    }
                },
            }
        }
    }
}

/// Word of the connection's loss, which no consumer gives while there is none.
fn losses_of(connection: &Connection) -> BoxStream<'static, Item> {
    let events = connection.events_listener();
    events
        .filter_map(async |event| match event {
            Event::Error(error) => Some(Item::Broken(explain(&error))),
            _ => None,
        })
        .boxed()
}

/// A consumer's deliveries, and then word that they are over.
fn items_of(consumer: Consumer) -> BoxStream<'static, Item> {
    let queue = consumer.queue().to_string();
    consumer
        .map(move |delivery| match delivery {
            Ok(delivery) => Item::Message(delivery.delivery_tag, Box::new(take(delivery, &queue))),
            Err(error) => Item::Broken(explain(&error)),
        })
        .chain(once(async { Item::Over }))
        .boxed()
}

fn take(delivery: lapin::message::Delivery, queue: &str) -> RawMessage {
    let properties = &delivery.properties;
    let compression = properties.headers().as_ref().and_then(|headers| {
        let value = headers.inner().get("compression")?;
        match value {
            AMQPValue::LongString(text) => Some(text.to_string()),
            AMQPValue::ShortString(text) => Some(text.to_string()),
            _ => None,
        }
    });
    RawMessage {
        stream_offset: properties.headers().as_ref().and_then(streams::offset),
        queue: queue.to_owned(),
        content_type: properties.content_type().as_ref().map(ToString::to_string),
        content_encoding: properties.content_encoding().as_ref().map(ToString::to_string),
        compression,
        redelivered: delivery.redelivered,
        body: delivery.data.into(),
    }
}
