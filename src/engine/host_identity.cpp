#include "engine/host_identity.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace riffle::engine {

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::string text = fmt::format("{}/{}", boot, getuid());
  for (const char* name : {"net", "ipc", "pid"}) {
    struct stat found{};
    if (stat(fmt::format("/proc/self/ns/{}", name).c_str(), &found) == 0)
      text += fmt::format("/{}", found.st_ino);
  }
  return text;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace riffle::engine
