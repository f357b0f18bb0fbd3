//! The test harness: real servers, real programs, real Python peers.
//!
//! Nothing here is a mock of something that can be had for real. RabbitMQ, MariaDB and PostgreSQL are
//! private instances of the installed packages, on free ports, one set per test process, started when the
//! first test asks; each test gets its own vhost and its own database. A missing server is a failed test
//! with a message that says what to install, never a skipped one.
//!
//! | module | topic |
//! |---|---|
//! | [`run_dir`], [`sweep`] | where a run keeps its files; nothing outlives the run, however it ends |
//! | [`server`], [`ports`], [`system_user`], [`wait`] | starting, stopping and waiting for a server process |
//! | [`rabbitmq`], [`management`], [`certificates`] | the broker; vhosts, queues as the broker sees them; TLS |
//! | [`openstack`], [`keystone_people`] | Keystone and Barbican; people and tokens of a test's own |
//! | [`memcached`] | a cache of tokens |
//! | [`cloud_services`] | Glance, Nova, Neutron and Cinder |
//! | [`heat`], [`heat_stacks`] | Heat; the stacks of a project |
//! | [`heat_cloud`], [`etcd_discovery`] | everything that a Heat driver asks when it makes a cluster |
//! | [`recorded_cloud`] | a stand-in for the cloud of the recorded requests |
//! | [`databases`], [`mariadb`], [`postgres`] | one database per test on each of the three backends |
//! | [`rabbitmq_cluster`], [`galera`], [`galera_front`], [`postgres_pair`], [`haproxy`] | clusters of servers, any of which may be killed; what stands before them |
//! | [`client_stream`] | clients that never end, with what they were told, for the checker |
//! | [`row_lock`] | rows that somebody holds |
//! | [`chaos_proxy`] | a line that can be cut, refused and stalled |
//! | [`http_trap`] | a line that loses the one HTTP exchange that a test names |
//! | [`tls_front`] | TLS before a service that speaks none |
//! | [`amqp_tap`] | a line that writes down what a client declares |
//! | [`probe`] | a database looked at from outside of the product's own types |
//! | [`api_alone`] | the API alone in the test's process |
//! | [`statements`] | what this process asks of an SQLite database, and how that is carried out |
//! | [`process`], [`builders`] | our programs with a written `magnum.conf` |
//! | [`fake_driver`] | a driver in this process that does what a test says |
//! | [`deployment`], [`driver_record`], [`rest`] | all of it together, and its witnesses |
//! | [`checker`] | decides from the outside whether a run kept what was promised |
//! | `simulation` | the conductors' own code in virtual time, on schedules that a seed decides |
//! | [`fuzz`], [`fuzz_seeds`] | what is fuzzed, for any fuzzer; what it begins with |
//! | [`files`] | folders that a test copies |
//! | [`full_disk`], [`no_processes`], [`descriptors`], [`fake_clock`] | a disk that is full, a host without room for processes, a program that may open nothing, a clock that steps, on command |
//! | [`shim`] | what of that is made with a C compiler |
//! | [`nemesis`] | faults of all kinds at once, by a seed, while tenants ask |
//! | [`raw_rpc`] | messages byte by byte |
//! | [`oslo_peer`] | Python peers, driven by JSON lines |
//! | [`plugin_world`] | doubles of all that drivers for Cluster API talk to, and these drivers' environment |
//! | [`management_cluster`] | a real API server with Cluster API's kinds, and a helm, for the same drivers |
//! | [`capi_deployment`] | our programs with these drivers, there |
//! | [`openstack_command`] | a tenant's command `openstack coe` |
//! | [`python_magnum`] | a whole Python Magnum: its API, its conductor, its command lines |
//! | [`differential`] | random requests to Magnum's API and to ours |
//! | [`heat_magnum`], [`heat_deployment`] | Magnum 22 with its Heat driver in the cloud of [`heat_cloud`]; our programs with that driver |
//!
//! It does not isolate tests from each other's load: two tests share two cores, so deadlines are generous
//! and nothing is proven by how long it took.

pub mod amqp_tap;
pub mod api_alone;
pub mod bench;
pub mod builders;
pub mod capi_deployment;
pub mod certificates;
pub mod chaos_proxy;
pub mod checker;
pub mod client_stream;
pub mod cloud_services;
pub mod collector;
pub mod databases;
pub mod deployment;
pub mod descriptors;
pub mod differential;
pub mod driver_record;
pub mod etcd_discovery;
pub mod fake_clock;
pub mod fake_driver;
pub mod files;
pub mod full_disk;
pub mod fuzz;
pub mod fuzz_seeds;
pub mod galera;
pub mod galera_front;
pub mod haproxy;
pub mod heat;
pub mod heat_cloud;
pub mod heat_deployment;
pub mod heat_magnum;
pub mod heat_stacks;
pub mod helm;
pub mod http_trap;
pub mod keystone_people;
pub mod kubernetes;
pub mod kubernetes_front;
pub mod management;
pub mod management_cluster;
pub mod mariadb;
pub mod memcached;
pub mod nemesis;
pub mod no_processes;
pub mod openstack;
pub mod openstack_command;
pub mod oslo_peer;
pub mod plugin_requests;
pub mod plugin_world;
pub mod ports;
pub mod postgres;
pub mod postgres_pair;
pub mod probe;
pub mod process;
pub mod python_magnum;
pub mod python_plugin;
pub mod rabbitmq;
pub mod rabbitmq_cluster;
pub mod raw_rpc;
pub mod recorded_cloud;
pub mod rest;
pub mod row_lock;
pub mod run_dir;
pub mod server;
pub mod shim;
#[cfg(feature = "simulation")]
pub mod simulation;
pub mod statements;
pub mod sweep;
pub mod system_user;
pub mod tls_front;
pub mod trustee_domain;
pub mod wait;

pub use databases::{Backend, TestDatabase};
