//! Whole programs: what holds across processes, servers and their ends.
//!
//! | module | proves |
//! |---|---|
//! | `end_to_end` | an unmodified `openstack coe` client does all it does with Magnum, on three databases |
//! | `crash_matrix` | `kill -9` at every crash point of every operation loses nothing and doubles nothing |
//! | `locked_rows` | while a cluster's row is locked, its requests wait in order and those of others go on |
//! | `different_drivers` | who claims a request does not decide by which driver it is carried out |
//! | `rolling_upgrade` | conductors of the release before and of this one share the work, and end what the other has begun |
//! | `cannot_run` | a conductor that cannot run the driver fails nothing, and does not attract the work |
//! | `no_descriptors` | a conductor whose broker goes away while it may open nothing works again after both |
//! | `bounds` | a bound of a node group that was set holds for the request after it |
//! | `report` | a service that is asked by SIGUSR2 says what it uses and works on, and goes on |
//! | `start_report` | a service says at its start what it has reached and as whom, and what to do where something is missing |
//! | `stop_during_start` | a service ends at once when it is told to, whatever it waits for while it starts |
//! | `storms` | hundreds of requests survive killed conductors, restarted brokers and databases |
//! | `change_storm` | so do clusters that go through every kind of operation meanwhile |
//! | `broker_cluster` | three brokers with quorum queues: any may be killed |
//! | `galera` | three database nodes, with one writer or several: any may be killed or paused; a quota holds |
//! | `promotion` | a standby of PostgreSQL is promoted, and nothing is lost |
//! | `database_outage` | without its database a conductor takes no message and loses none |
//! | `long_calls` | a caller that asks for signs of life gets them as long as its operation takes |
//! | `disabled_drivers` | a driver that was disabled builds nothing new and operates what it built |
//! | `slow_drivers` | a driver may take its time: it is observed, a delete overtakes it, nothing is called twice |
//! | `driver_api` | a driver's own API: who may call what, changes one at a time and at most once, failures and time limits |
//! | `notifications` | other services hear what becomes of clusters, and of refused requests |
//! | `notification_drivers` | a real oslo.messaging listener hears what each driver sends, wherever the options say |
//! | `message_authentication` | where messages have to be signed, a stranger on the broker changes nothing |
//! | `nemesis` | faults of all kinds at once, by a seed, while tenants ask: nothing is lost and nothing is wrong |
//! | `node_choice` | the nodes that a request names go, names of none are refused; a driver chooses where none is named, and a crash changes nothing about it |
//! | `quota` | a quota holds when many ask at once at several APIs |
//! | `outages` | servers go away and come back: 503 meanwhile, no restart, work is given up in time |
//! | `losses_under_load` | Keystone, Glance, the broker and the database go away while many ask: 202 and 503, no promise is lost |
//! | `barbican_outages` | so do Keystone and Barbican: nothing is left in them, and who asks is told |
//! | `secrets` | a user's token is in no file, table or log |
//! | `full_disk` | an API whose database has no room says so |
//! | `key_pool` | keys made ahead of need: an idle conductor makes them, a killed one loses those it had taken, nobody gets them again |
//! | `frozen_conductor` | a conductor that stands still keeps no request from the others for longer than its lease |
//! | `conductor_process` | signals, the admin interface, and what becomes of a driver's program |
//! | `magnum_dev` | the embedded default, as somebody meets it who has just cloned the repository |
//! | `python_driver` | a driver that is a Python package: its clusters' whole life, and what is left of cut-off calls |
//! | `python_host` | a host whose imports take long, or never end |
//! | `python_environments` | drivers with Magnum 22 and its trusts, alone and beside one with Magnum 23 |
//! | `traces` | one request, followed through the lines of every program, and by its trace |
//! | `bad_input` | whatever is wrong with a message, a request, a manifest or a disk harms nobody else |
//! | `utilisation` | what clusters use is shown by metrics and told by notifications, and is gone with the cluster |
//! | `interop` | Python casts to our conductor and Python's server understands our API |

mod bad_input;
mod barbican_outages;
mod bounds;
mod broker_cluster;
mod cannot_run;
mod change_storm;
mod conductor_process;
mod crash_matrix;
mod database_outage;
mod different_drivers;
mod disabled_drivers;
mod driver_api;
mod end_to_end;
mod frozen_conductor;
mod full_disk;
mod galera;
mod interop;
mod key_pool;
mod locked_rows;
mod long_calls;
mod losses_under_load;
mod magnum_dev;
mod message_authentication;
mod nemesis;
mod no_descriptors;
mod node_choice;
mod notification_drivers;
mod notifications;
mod outages;
mod promotion;
mod python_driver;
mod python_environments;
mod python_host;
mod quota;
mod report;
mod rolling_upgrade;
mod secrets;
mod slow_drivers;
mod start_report;
mod stop_during_start;
mod storms;
mod traces;
mod utilisation;
