//! In-process servers, a simulated clock, transcripts.
