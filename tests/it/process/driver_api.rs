//! A driver's own API, through the real API, conductor and RabbitMQ, with the shipped disk driver.

mod calls;
mod changes;
mod failures;
mod world;
