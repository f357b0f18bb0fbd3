//! Users and trusts of clusters where Magnum up to 22 has them: columns of `cluster`, at revision `c0f832afc4fd`.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use magnum_db::{AnyConnection, DbError};

/// What one cluster has. The password is in clear.
#[derive(QueryableByName)]
pub struct FormerTrust {
    /// The cluster.
    #[diesel(sql_type = Text)]
    pub uuid: String,
    /// The trust.
    #[diesel(sql_type = Nullable<Text>)]
    pub trust_id: Option<String>,
    /// The user's name.
    #[diesel(sql_type = Nullable<Text>)]
    pub trustee_username: Option<String>,
    /// The user.
    #[diesel(sql_type = Nullable<Text>)]
    pub trustee_user_id: Option<String>,
    /// The user's password.
    #[diesel(sql_type = Nullable<Text>)]
    pub trustee_password: Option<String>,
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// All of them.
///
/// # Errors
/// The database's; also where it is at another revision.
pub fn list(conn: &mut AnyConnection) -> Result<Vec<FormerTrust>, DbError> {
    let query = "SELECT uuid, trust_id, trustee_username, trustee_user_id, trustee_password FROM cluster \
                 WHERE uuid IS NOT NULL AND (trust_id IS NOT NULL OR trustee_user_id IS NOT NULL)";
    Ok(diesel::sql_query(query).load(conn)?)
}

/// How many clusters have some, and are not among those of ours. `has_ours`: whether our table is there.
///
/// # Errors
/// As [`list`].
pub fn count_unsaved(conn: &mut AnyConnection, has_ours: bool) -> Result<i64, DbError> {
    let mut query =
        "SELECT COUNT(*) AS n FROM cluster WHERE (trust_id IS NOT NULL OR trustee_user_id IS NOT NULL)"
            .to_owned();
    if has_ours {
        query.push_str(
            " AND NOT EXISTS (SELECT 1 FROM conductor_cluster_trust WHERE cluster_uuid = cluster.uuid)",
        );
    }
    Ok(diesel::sql_query(query).get_result::<Number>(conn)?.n)
}
