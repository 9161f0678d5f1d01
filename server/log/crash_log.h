#pragma once

namespace torpor::server {

// From now on an exception that no thread catches is written to the log, with the thread's name,
// before the process aborts. No thread goes on behind such an exception: what it left behind could
// not be trusted, and the next process is there within a second. Call once, after SetUpLog.
void LogUncaughtExceptions();

}  // namespace torpor::server
