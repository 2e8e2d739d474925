// Nothing is left behind, not even after kill -9.
//
// A guarded program is two processes: the outer one, which the user sees and signals, passes
// signals on, waits, and ends with the inner one's exit code; the inner one does the work. Both
// adopt what their descendants leave behind. Whichever of the two is killed, the other ends all
// that is left; only killing both at once defeats it, and even then direct children end, which ask
// the kernel for it (start_process).
#pragma once

#include <sys/types.h>

#include <chrono>

#include "base/descriptor.h"

namespace riffle::process {

struct Guard {
  bool outer = false;
  int exit_code = 0;    // outer: what the inner process ended with, 128 + n for signal n
  bool killed = false;  // outer: by a signal
  Descriptor lifeline;  // inner: becomes readable when the outer process is gone
};

// Returns twice: in the inner process at once, in the outer one when the inner has ended and
// nothing is left. To be called while there is one thread. In the inner process SIGINT, SIGTERM,
// SIGHUP, SIGQUIT and SIGCHLD are blocked, to be taken from a signalfd, and SIGPIPE is ignored.
Guard guard_process();

// In the inner process, for work that nothing is lost of when it stops anywhere: from now on
// signals end it as they end any process, and the end of the outer one does, kill -9 included.
void end_with_outer(const Guard& guard);

// Kills and reaps every child there is, adopted ones included, until there is none. False when some
// are left at the end of the time.
bool end_all_children(std::chrono::milliseconds time);

}  // namespace riffle::process
