//! The lines of SCRIPT HELP.

pub(super) const LINES: &[&str] = &[
    "DEBUG (YES|SYNC|NO)",
    "    Answer OK to NO and an error to the others: there is no debugger.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Tell of each sum whether its script is known: 1 or 0.",
    "FLUSH [ASYNC|SYNC]",
    "    Forget all scripts. Without a word, lazyfree-lazy-user-flush decides which of these is meant:",
    "    * ASYNC: their memory is freed in the background.",
    "    * SYNC: it is freed before the reply.",
    "KILL",
    "    End the script that runs, if it has written nothing yet.",
    "LOAD <script>",
    "    Keep a script without running it, and answer its sum for EVALSHA.",
    "SHOW <sha1>",
    "    Show the text of the script that has this sum.",
];
