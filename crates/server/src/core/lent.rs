//! Sessions that workers lend to other threads: a request that takes long runs there, with its client's
//! session, while the worker goes on with other clients.
//!
//! ```text
//! dispatch finds that a request takes long --- Errand ---> worker --- Lent ---> queue ---> a thread runs it
//!                                                            ^                               |
//!                                                            \---- channel, Message::Returned/
//! ```
//!
//! The connection stays with its worker (`worker/lent.rs`): what it receives is kept and not parsed, what is
//! pushed to it waits behind the reply. A client that leaves or is killed meanwhile gets no reply; its
//! session still comes back, and is dropped there. The statistics are those of the worker: it counts the
//! request when it is back, by the time that it took in both places.
use crate::core::mailbox::Message;
use crate::core::parted::Parted;
use crate::core::queue_elsewhere::QueueElsewhere;
use crate::core::server::Server;
use crate::core::session::Session;
use crate::core::written_elsewhere::Writing;
use crate::state::config::reason;
use crate::state::lending::{Job, Threads};
use crate::state::pause::Held;
use command::Done;
use net::Meter;
use resp::{Args, Reply, Span};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, panicking};

/// A request that a session runs, wherever that is.
pub(crate) struct Turn<'t> {
    pub(crate) server: &'t Server,
    pub(crate) session: &'t mut Session,
    pub(crate) args: Args<'t>,
    pub(crate) reply: &'t mut Reply,
    /// Where a command that writes leaves what it has made, for the worker to put in its place.
    pub(crate) writing: &'t mut Option<Box<Writing>>,
    /// Where what is to run in parts is left for the worker, which runs it.
    pub(crate) parts: &'t mut Option<Arc<Parted>>,
    /// Where EXEC leaves what its queue has come to.
    pub(crate) queue: &'t mut Option<Box<QueueElsewhere>>,
}

/// What is to be done on another thread.
pub(crate) type Work = Box<dyn FnOnce(Turn<'_>) -> Done + Send>;

/// Where a session is lent to.
pub(crate) enum Task {
    /// To any thread, which does this.
    Work(Work),
    /// To a thread of its own, which does this, because it may wait for others.
    Waits(Work, OwnThread),
    /// To the thread of scripts, which runs the request (`worker/script_thread.rs`). What CLIENT PAUSE held
    /// back, but not this.
    Script(Held),
}

/// What dispatch has found out of a request that is to be run elsewhere.
pub(crate) struct Errand {
    pub(crate) task: Task,
    /// CLIENT REPLY: the client does not want the reply.
    pub(crate) is_mute: bool,
}

/// A copy of a request, which outlives the buffer that it has arrived in.
#[derive(Default)]
pub(crate) struct KeptRequest {
    text: Vec<u8>,
    /// Where the text of the request begins, from which its spans count.
    start: usize,
    spans: Vec<Span>,
}

impl KeptRequest {
    /// A copy of these arguments.
    pub(crate) fn of(args: &Args<'_>) -> KeptRequest {
        let mut kept = KeptRequest::default();
        args.append_to(&mut kept.text, &mut kept.spans);
        kept
    }

    /// A request that is the rest of this text, from `start` on.
    pub(crate) fn whole(text: Vec<u8>, start: usize, spans: Vec<Span>) -> KeptRequest {
        KeptRequest { text, start, spans }
    }

    pub(crate) fn args(&self) -> Args<'_> {
        Args::new(&self.text[self.start..], &self.spans)
    }

    /// The name of the command and these words, as a request of their own. `spans` is room for it.
    pub(crate) fn some<'s>(
        &'s self,
        words: impl Iterator<Item = usize>,
        spans: &'s mut Vec<Span>,
    ) -> Args<'s> {
        spans.clear();
        spans.push(self.spans[0]);
        spans.extend(words.map(|word| self.spans[word]));
        Args::new(&self.text[self.start..], spans)
    }

    /// At least as many bytes as the request had when it arrived.
    pub(crate) fn wire_bytes(&self) -> usize {
        const HEADER_BYTES_MAX: usize = 32;
        self.text.len() + (self.spans.len() + 1) * HEADER_BYTES_MAX
    }

    /// Bytes of memory that it takes.
    pub(crate) fn room_bytes(&self) -> usize {
        self.text.capacity() + self.spans.capacity() * size_of::<Span>()
    }
}

/// A session on its way to a thread and back.
pub(crate) struct Lent {
    pub(crate) session: Session,
    pub(crate) request: KeptRequest,
    /// Of this request alone; empty until it has run.
    pub(crate) reply: Reply,
    pub(crate) is_mute: bool,
    /// What the request came to, and how long the thread has worked on it.
    pub(crate) done: Done,
    pub(crate) ticks: u64,
    /// What the request has written, and is yet to be put in its place.
    pub(crate) writing: Option<Box<Writing>>,
    /// What runs in parts, and has not run to its end.
    pub(crate) parts: Option<Arc<Parted>>,
    /// The queue of an EXEC that has run, and is yet to take its place.
    pub(crate) queue: Option<Box<QueueElsewhere>>,
    /// None when it is done.
    task: Option<Task>,
}

impl Lent {
    /// A session that is to run this request elsewhere, and the reply that it writes to.
    pub(crate) fn new(errand: Errand, session: Session, request: KeptRequest, reply: Reply) -> Lent {
        let Errand { task, is_mute } = errand;
        let (done, task) = (Ok(()), Some(task));
        Lent {
            session,
            request,
            reply,
            is_mute,
            done,
            ticks: 0,
            writing: None,
            parts: None,
            queue: None,
            task,
        }
    }

    /// It is to run again, from the beginning.
    pub(crate) fn begin_anew(&mut self, work: Work) {
        let mut reply = Reply::new(self.reply.protocol);
        reply.bound(self.reply.spare_bytes().saturating_add(self.reply.out.len()));
        (self.reply, self.done, self.task) = (reply, Ok(()), Some(Task::Work(work)));
    }

    /// Whether it goes to the thread of scripts.
    pub(crate) fn is_for_scripts(&self) -> bool {
        matches!(self.task, Some(Task::Script(_)))
    }

    /// What CLIENT PAUSE held back when it was lent to the thread of scripts.
    pub(crate) fn passed_by(&self) -> Held {
        if let Some(Task::Script(held)) = self.task { held } else { Held::Nothing }
    }

    /// The thread that is its own.
    fn take_thread(&mut self) -> Option<OwnThread> {
        let (task, thread) = match self.task.take()? {
            Task::Waits(work, thread) => (Task::Work(work), Some(thread)),
            task => (task, None),
        };
        self.task = Some(task);
        thread
    }

    fn carry_out(&mut self, server: &Server, meter: Meter) {
        let Some(Task::Work(work)) = self.task.take() else { return };
        let start = meter.read();
        let (session, reply) = (&mut self.session, &mut self.reply);
        let (writing, parts, queue) = (&mut self.writing, &mut self.parts, &mut self.queue);
        self.done = work(Turn { server, session, args: self.request.args(), reply, writing, parts, queue });
        self.ticks += meter.read().since(start);
    }
}

/// The way by which sessions come back to their worker.
pub(crate) struct Returned {
    sender: Sender<Box<Lent>>,
    arrivals: Receiver<Box<Lent>>,
}

impl Default for Returned {
    fn default() -> Returned {
        let (sender, arrivals) = channel();
        Returned { sender, arrivals }
    }
}

/// The way back to one worker.
pub(crate) struct Back(Sender<Box<Lent>>);

impl Back {
    /// The session goes back. Where its worker has ended the session ends too.
    pub(crate) fn give(self, server: &Server, lent: Box<Lent>) {
        let worker = lent.session.record.worker;
        if self.0.send(lent).is_ok() {
            server.mailboxes[worker].send(Message::Returned);
        }
    }
}

impl Returned {
    pub(crate) fn way_back(&self) -> Back {
        Back(self.sender.clone())
    }

    /// One that has come back.
    pub(crate) fn next(&self) -> Option<Box<Lent>> {
        self.arrivals.try_recv().ok()
    }
}

/// Gives a session to a thread. It comes back through the channel of its worker, which is told by a message.
pub(crate) fn lend(server: &Server, mut lent: Box<Lent>, returned: &Returned, meter: Meter) {
    let thread = lent.take_thread();
    let (owner, back) = (server.shared(), returned.way_back());
    let job: Job = Box::new(move || {
        lent.carry_out(&owner, meter);
        back.give(&owner, lent);
    });
    if let Some(OwnThread(jobs)) = thread {
        // It waits for just that.
        return drop(jobs.send(job));
    }
    if server.lending.put(job) == Threads::Enough {
        return;
    }
    let owner = server.shared();
    let work = move || {
        let _ender = Ender(&owner);
        std::iter::from_fn(|| owner.lending.next()).for_each(|job| job());
    };
    if let Err(error) = Builder::new().name("sardine-lent".into()).spawn(work) {
        server.log.warning(&format!("No thread for a request that takes long: {}", reason(&error)));
        if let Some(job) = server.lending.not_started() {
            job();
        }
    }
}

/// A thread for one thing that may wait for others, and must not keep requests that only take long from
/// theirs. It is started before there is anything to do, because then it can still be refused.
pub(crate) struct OwnThread(Sender<Job>);

impl OwnThread {
    pub(crate) fn start(server: &Server) -> std::io::Result<OwnThread> {
        let (sender, jobs) = channel::<Job>();
        let owner = server.shared();
        let work = move || {
            let _ender = Ender(&owner);
            jobs.into_iter().take(1).for_each(|job| job());
        };
        Builder::new().name("sardine-waits".into()).spawn(work)?;
        Ok(OwnThread(sender))
    }
}

/// Ends the server where a thread that runs requests panics: its client would wait for ever. (The program
/// ends at any panic; this is for servers of tests.)
pub(crate) struct Ender<'s>(pub(crate) &'s Server);

impl Drop for Ender<'_> {
    fn drop(&mut self) {
        if panicking() {
            self.0.fail("A thread that runs a request has panicked: the server stops");
        }
    }
}
