// The network device of an emulated host: a TUN device whose other end the switch holds.
#pragma once

#include <cstdint>

#include "base/descriptor.h"

namespace riffle::lab {

constexpr const char* device_name = "eth0";
constexpr int mtu = 1500;

struct DeviceOptions {
  int host = 0;
  int frame = 65'536;       // bytes that may leave in one piece (TSO)
  std::int64_t window = 0;  // that TCP's buffers must cover
};

// Makes eth0 and lo of the network namespace that the calling thread is in, with the host's address
// and no route but to the other hosts; TCP is reno, which sends when it may (bbr paces). The
// descriptor gives and takes packets with a virtio header, does not block, and is the device's
// life.
Descriptor make_device(const DeviceOptions& options);

}  // namespace riffle::lab
