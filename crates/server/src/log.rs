//! The log: Redis's levels and line format, to standard output or `logfile`.
