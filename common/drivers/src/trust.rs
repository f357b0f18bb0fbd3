//! Whether a driver's folder can only be changed by those who may.
//!
//! Who can write there runs programs as the conductor, with its keys and with the tokens of tenants. Looked at is every file
//! and folder in it, and the folder around it, in which another one could be put in its place. Modes decide, as sshd has it
//! with keys:
//!
//! | who may write | |
//! |---|---|
//! | the owner, whoever that is | fine: an administrator may have copied the files as anybody |
//! | a group that is nobody else: root's, this process's own, one that the owner has to itself (what `umask 0002` is for) | fine |
//! | another group, or everybody | refused; in the folder around it a sticky bit is enough, as in `/tmp` |
//!
//! Not looked at: what links lead to (the program itself may not be a link out of the folder), folders further up, and access
//! lists beyond what they show in the mode.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Group, Uid, User, getegid};

use super::manifest::Problem;

const STICKY: u32 = 0o1000;
/// So many are named.
const MOST_NAMED: usize = 3;

/// What others may write.
pub(super) fn check(dir: &Path) -> Vec<Problem> {
    let mut groups = Groups::default();
    let around = around(dir).into_iter().filter(|folder| {
        fs::metadata(folder)
            .is_ok_and(|found| found.permissions().mode() & STICKY == 0 && groups.let_others_write(&found))
    });
    let mut problems: Vec<Problem> = around
        .map(|folder| {
            Problem::of_folder(format!(
                "others may put another folder in its place: chmod go-w {}",
                folder.display()
            ))
        })
        .collect();
    let mut open = inside(dir, &mut groups);
    open.sort();
    if !open.is_empty() {
        let named: Vec<String> = open
            .iter()
            .take(MOST_NAMED)
            .map(|path| shown(dir, path))
            .collect();
        let more = match open.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        problems.push(Problem::of_folder(format!(
            "others may write to {}{more}: chmod -R go-w {}",
            named.join(", "),
            dir.display()
        )));
    }
    problems
}

/// The folders in which it could be replaced: of its name, and where that leads if it is a link.
fn around(dir: &Path) -> BTreeSet<PathBuf> {
    let of_name = dir.parent().map(|parent| match parent.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => parent.to_owned(),
    });
    let real = dir.canonicalize().ok();
    let of_real = real.as_deref().and_then(Path::parent).map(Path::to_owned);
    let both = of_name.into_iter().chain(of_real);
    both.filter_map(|folder| folder.canonicalize().ok()).collect()
}

/// What others may write of the folder and all that is in it. What cannot be looked at cannot be used, or is gone.
fn inside(dir: &Path, groups: &mut Groups) -> Vec<PathBuf> {
    let mut open = Vec::new();
    if fs::metadata(dir).is_ok_and(|found| groups.let_others_write(&found)) {
        open.push(dir.to_owned());
    }
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            // Of a link, its own.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            let has_content = found.is_dir() || found.is_file();
            if has_content && groups.let_others_write(&found) {
                open.push(entry.path());
            }
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    open
}

fn shown(dir: &Path, path: &Path) -> String {
    match path.strip_prefix(dir) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside.display().to_string(),
        _ => "the folder".to_owned(),
    }
}

/// Which groups are somebody's own, asked of the system once each.
#[derive(Default)]
struct Groups(HashMap<(u32, u32), bool>);

impl Groups {
    fn let_others_write(&mut self, found: &Metadata) -> bool {
        let (mode, owner, group) = (found.permissions().mode(), found.uid(), found.gid());
        let by_group = mode & 0o020 != 0 && !self.is_nobody_else(owner, group);
        by_group || mode & 0o002 != 0
    }

    fn is_nobody_else(&mut self, owner: u32, group: u32) -> bool {
        group == 0
            || group == getegid().as_raw()
            || *self.0.entry((owner, group)).or_insert_with(|| {
                // Not to know is not to trust.
                let user = User::from_uid(Uid::from_raw(owner));
                let named = Group::from_gid(Gid::from_raw(group));
                match (user, named) {
                    (Ok(user), Ok(named)) => {
                        let user = user.map(|user| user.name);
                        let named = named.map(|group| (group.name, group.mem));
                        is_of_owner_alone((owner, user), (group, named))
                    }
                    _ => false,
                }
            })
    }
}

/// Whether a group is its owner's own: called as the owner, and without other members; or, where the system knows neither
/// (files of another machine, in a container), of the same number.
fn is_of_owner_alone(owner: (u32, Option<String>), group: (u32, Option<(String, Vec<String>)>)) -> bool {
    match (owner, group) {
        ((_, Some(user)), (_, Some((name, members)))) => {
            name == user && members.iter().all(|member| *member == user)
        }
        ((uid, None), (gid, None)) => uid == gid,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_its_owners_if_nobody_else_is_in_it() {
        let user = |name: &str| Some(name.to_owned());
        let group = |name: &str, members: &[&str]| {
            Some((name.to_owned(), members.iter().map(ToString::to_string).collect()))
        };
        let is_own = |user, group| is_of_owner_alone((1000, user), (1000, group));
        assert!(is_own(user("ann"), group("ann", &[])));
        assert!(is_own(user("ann"), group("ann", &["ann"])));
        assert!(!is_own(user("ann"), group("ann", &["ann", "bob"])));
        assert!(!is_own(user("ann"), group("staff", &[])));
        assert!(!is_own(user("ann"), None));
        assert!(!is_own(None, group("ann", &[])));
        assert!(is_of_owner_alone((1000, None), (1000, None)));
        assert!(!is_of_owner_alone((1000, None), (1001, None)));
    }
}
