//! All users together: the value that nobody changes, [`Users`], and where the one in force is kept,
//! [`Accounts`].
use super::catalog::Catalog;
use super::log::AclLog;
use super::password::Passwords;
use super::rule::{RuleError, Rules};
use super::user::User;
use crate::state::config::ChannelDefault;
use rpds::RedBlackTreeMapSync;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The user of clients that have not logged in as another. It cannot be removed.
pub(crate) const DEFAULT_USER: &[u8] = b"default";

/// Every user by name. `default` is always among them.
#[derive(Clone, Debug)]
pub(crate) struct Users {
    /// Grows with every change.
    version: u64,
    /// The id of the next user.
    next_id: u64,
    /// Whoever changes users does so in a clone, which shares all of them but for the way to the one.
    all: RedBlackTreeMapSync<Vec<u8>, Arc<User>>,
}

impl Users {
    /// With nobody but the default user, who may do everything: without a password, or with this one.
    pub(crate) fn new(password: &[u8], rules: &Rules<'_>) -> Users {
        let mut users = Users { version: 0, next_id: 0, all: RedBlackTreeMapSync::new_sync() };
        users.add_free_default(rules);
        users.set_default_password(password, rules);
        users
    }

    /// Which value this is: see [`Accounts::version`].
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.all.get(name)
    }

    /// The present version of a user that was read earlier; None where that user was removed, also if another
    /// user has the name now.
    pub(crate) fn renewed(&self, user: &User) -> Option<&Arc<User>> {
        self.find(&user.name).filter(|present| present.id == user.id)
    }

    /// The default user.
    pub(crate) fn default_user(&self) -> &Arc<User> {
        &self.all[DEFAULT_USER]
    }

    /// A user who may do nothing and is not among these users.
    pub(crate) fn nobody(&self) -> User {
        User::new(u64::MAX, b"", ChannelDefault::None)
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.all.values()
    }

    /// Whether clients that come now have to log in.
    pub(crate) fn ask_for_login(&self) -> bool {
        self.default_user().asks_for_login()
    }

    /// Makes or changes a user by rules. Where a rule is refused nothing has changed, and the error is that
    /// rule with the reason.
    pub(crate) fn set<'r>(
        &mut self,
        name: &[u8],
        rules: &'r [Vec<u8>],
        by: &Rules<'_>,
    ) -> Result<(), (&'r [u8], RuleError)> {
        let mut user = match self.all.get(name) {
            Some(user) => User::clone(user),
            None => User::new(self.take_id(), name, by.channels),
        };
        for rule in rules {
            user.apply(rule, by).map_err(|why| (rule.as_slice(), why))?;
        }
        self.all.insert_mut(name.to_vec(), Arc::new(user));
        Ok(())
    }

    /// Removes a user and returns whether there was one of this name. It must not be the default user.
    pub(crate) fn remove(&mut self, name: &[u8]) -> bool {
        debug_assert!(name != DEFAULT_USER, "the default user cannot be removed");
        self.all.remove_mut(name)
    }

    /// What `requirepass` means: the default user's only password; empty is none.
    pub(crate) fn set_default_password(&mut self, password: &[u8], rules: &Rules<'_>) {
        let rule = if password.is_empty() { b"nopass".to_vec() } else { [b">", password].concat() };
        self.set(DEFAULT_USER, &[b"resetpass".to_vec(), rule], rules).expect("these rules are always right");
    }

    /// Makes the default user one that may do everything, without a password.
    fn add_free_default(&mut self, rules: &Rules<'_>) {
        const FREE: [&str; 6] = ["reset", "on", "nopass", "allkeys", "allchannels", "allcommands"];
        let free: Vec<Vec<u8>> = FREE.iter().map(|rule| rule.as_bytes().to_vec()).collect();
        self.set(DEFAULT_USER, &free, rules).expect("these rules are always right");
    }

    /// The value with these users in the place of the present ones. A user whose name is among the present
    /// ones keeps its id. If the default user is not among them it may do everything again.
    pub(super) fn replaced_by(&self, named: Vec<User>, rules: &Rules<'_>) -> Users {
        let mut next =
            Users { version: self.version, next_id: self.next_id, all: RedBlackTreeMapSync::new_sync() };
        for mut user in named {
            user.id = match self.all.get(&user.name) {
                Some(present) => present.id,
                None => next.take_id(),
            };
            next.all.insert_mut(user.name.clone(), Arc::new(user));
        }
        if !next.all.contains_key(DEFAULT_USER) {
            let present = User::new(self.default_user().id, DEFAULT_USER, ChannelDefault::None);
            next.all.insert_mut(DEFAULT_USER.to_vec(), Arc::new(present));
            next.add_free_default(rules);
        }
        next
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

/// The users in force, and what goes with them.
pub(crate) struct Accounts {
    /// What rules are read against.
    pub(crate) catalog: Catalog,
    /// ACL LOG
    pub(crate) log: AclLog,
    /// The source of passwords for ACL GENPASS.
    pub(crate) passwords: Passwords,
    /// Replaced as a whole, so that whoever has read them goes on with what it has.
    users: RwLock<Arc<Users>>,
    /// Held while users are changed or written to their file, which may take long; readers do not take it.
    writer: Mutex<()>,
    /// The version of `users`.
    version: AtomicU64,
}

impl Accounts {
    /// These users are in force from the start.
    pub(crate) fn new(users: Users, catalog: Catalog, passwords: Passwords) -> Accounts {
        Accounts {
            catalog,
            log: AclLog::default(),
            passwords,
            version: AtomicU64::new(users.version),
            users: RwLock::new(Arc::new(users)),
            writer: Mutex::default(),
        }
    }

    /// The users as they are now. It takes a lock that is held for no longer than to copy a pointer.
    pub(crate) fn users(&self) -> Arc<Users> {
        Arc::clone(&self.users.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The version of the users in force. Whoever has seen an effect of a change sees its version too.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Changes the users as a whole: `change` sees the present ones and makes the next, or returns an error,
    /// and then nothing changes. One change is made at a time. Returns the users after it.
    pub(crate) fn replace<E>(
        &self,
        change: impl FnOnce(&Users) -> Result<Users, E>,
    ) -> Result<Arc<Users>, E> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.users();
        let mut next = change(&before)?;
        next.version = before.version + 1;
        let next = Arc::new(next);
        *self.users.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&next);
        self.version.store(next.version, Ordering::Release);
        Ok(next)
    }

    /// Calls `work` with users that nobody changes meanwhile: ACL SAVE writes its file in it.
    pub(crate) fn with_users_kept<R>(&self, work: impl FnOnce(&Users) -> R) -> R {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        work(&self.users())
    }
}
