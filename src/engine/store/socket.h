// TCP for the store: IPv4 and IPv6, non-blocking sockets, every wait with a deadline.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "riffle/error.h"
#include "riffle/store.h"

namespace riffle::store {

// Listens there and nowhere else. UsageError when that is not possible.
Descriptor listen_on(const StoreAddress& bind);
// The next connection with its peer's address; invalid, with errno, when there is none.
Descriptor accept_from(int listener, std::string& peer);
// Numeric address and port of this end.
StoreAddress local_address(int socket);

// Tries every address of the name once; invalid, with the last problem as text, when none answers.
Descriptor connect_to(const StoreAddress& address, Deadline deadline, std::string& problem);

// Until the socket is ready for `events` (POLLIN, POLLOUT); false at the deadline.
bool wait_for(int socket, short events, Deadline deadline);

// Whether a name stands for the loopback interface on this host. False for an unknown name.
bool is_loopback(const std::string& host);

// Lets the process have this many descriptors more than it has now, as far as its hard limit
// allows.
void raise_open_files(int wanted);

}  // namespace riffle::store
