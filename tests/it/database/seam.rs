//! What a simulation relies on: work through a seam is done, refused or done with its answer lost as the seam says, and the
//! repetitions are the pool's.

use std::collections::VecDeque;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use magnum_db::simulated::{Access, Fate, Seam};
use magnum_db::{AnyConnection, Database, DatabaseUrl, DbError, PoolOptions};

struct Scripted {
    conn: Mutex<AnyConnection>,
    fates: Mutex<VecDeque<Fate>>,
    seen: Mutex<Vec<Access>>,
}

impl Seam for Scripted {
    fn begin(&self, access: Access) -> Pin<Box<dyn Future<Output = Fate> + Send + '_>> {
        self.seen.lock().unwrap().push(access);
        Box::pin(ready(
            self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Done),
        ))
    }

    fn carry_out(&self, work: &mut dyn FnMut(&mut AnyConnection)) {
        work(&mut self.conn.lock().unwrap());
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(ready(()))
    }
}

impl Scripted {
    fn rows(&self) -> usize {
        let mut conn = self.conn.lock().unwrap();
        // Counted without the seam: one row for each that was inserted.
        diesel::sql_query("UPDATE t SET n = n")
            .execute(&mut *conn)
            .unwrap()
    }
}

async fn through(fates: Vec<Fate>) -> (Arc<Scripted>, Database) {
    let mut sqlite = SqliteConnection::establish(":memory:").unwrap();
    sqlite.batch_execute("CREATE TABLE t (n INTEGER)").unwrap();
    let seam = Arc::new(Scripted {
        conn: Mutex::new(AnyConnection::Sqlite(sqlite)),
        fates: Mutex::new(fates.into()),
        seen: Mutex::default(),
    });
    let url = DatabaseUrl::parse("sqlite://").unwrap();
    let base = Database::open(url, PoolOptions::default()).await.unwrap();
    let db = base.through(Arc::clone(&seam) as Arc<dyn Seam>);
    (seam, db)
}

fn insert(conn: &mut AnyConnection) -> Result<(), DbError> {
    diesel::sql_query("INSERT INTO t VALUES (1)").execute(conn)?;
    Ok(())
}

fn away() -> DbError {
    DbError::Unavailable("as the test says".to_owned())
}

#[tokio::test]
async fn work_with_a_lost_answer_is_done_and_refused_work_is_not() {
    let (seam, db) = through(vec![Fate::Lost(away()), Fate::Refused(away())]).await;
    let lost = db.transaction::<_, DbError, _>(insert).await;
    assert!(matches!(lost, Err(DbError::Unavailable(_))), "{lost:?}");
    assert_eq!(seam.rows(), 1);
    let refused = db.transaction::<_, DbError, _>(insert).await;
    assert!(matches!(refused, Err(DbError::Unavailable(_))), "{refused:?}");
    assert_eq!(seam.rows(), 1);
    db.run(insert).await.unwrap();
    assert_eq!(seam.rows(), 2);
}

#[tokio::test]
async fn a_conflict_is_repeated_by_the_pool_and_a_failure_is_rolled_back() {
    let (seam, db) = through(vec![Fate::Refused(DbError::Conflict(
        "as the test says".to_owned(),
    ))])
    .await;
    db.transaction::<_, DbError, _>(insert).await.unwrap();
    assert_eq!(seam.rows(), 1);
    assert_eq!(*seam.seen.lock().unwrap(), [Access::Transaction; 2]);
    let failed = db
        .brief_transaction::<(), DbError, _>(|conn| {
            insert(conn)?;
            Err(DbError::NotFound)
        })
        .await;
    assert!(matches!(failed, Err(DbError::NotFound)), "{failed:?}");
    assert_eq!(seam.rows(), 1);
}
