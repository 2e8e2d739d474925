#include "worker.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace riffle::bench {

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

int connect_to(const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(name) + 1 > sizeof address.sun_path) throw std::runtime_error("socket name");
  const std::size_t abstract = name[0] == '/' ? 0 : 1;
  std::memcpy(address.sun_path + abstract, name, std::strlen(name));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(name));  // 0: an end
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0)
    throw std::runtime_error("cannot reach the benchmark");
  return fd;
}

long long now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

struct Times {
  long long before = 0;
  long long after = 0;
};

// Whole numbers below 2^24, so that any order of adding gives the same sum.
float value_of(int rank, std::size_t call) {
  return static_cast<float>(1 + rank + static_cast<int>(call % 1000));
}

bool run_block(int rank, int size, const Contender& contender, std::size_t bytes, std::size_t calls,
               std::vector<Times>& times) {
  const std::size_t count = bytes / sizeof(float);
  float* values = contender.prepare(bytes);
  times.assign(calls, {});
  bool right = true;
  for (std::size_t call = 0; call < calls; ++call) {
    for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, call);
    contender.meet();
    times[call].before = now();
    contender.all_reduce(values, count);
    times[call].after = now();
    float sum = 0;
    for (int r = 0; r < size; ++r) sum += value_of(r, call);
    for (const std::size_t i : {std::size_t{0}, count / 2, count - 1})
      right = right && values[i] == sum;
  }
  // Open MPI sends the rest of a large message only while it is inside a call.
  contender.meet();
  return right;
}

}  // namespace

void serve(const char* socket, int rank, int size, const Contender& contender) {
  const int connection = connect_to(socket);
  const File in(fdopen(connection, "r"));
  const File out(fdopen(dup(connection), "w"));
  std::fprintf(out.get(), "%d\n", rank);
  std::fflush(out.get());
  std::vector<Times> times;
  std::size_t bytes = 0;
  std::size_t calls = 0;
  while (std::fscanf(in.get(), " run %zu %zu", &bytes, &calls) == 2) {
    const bool right = run_block(rank, size, contender, bytes, calls, times);
    if (right)
      for (const Times& each : times)
        std::fprintf(out.get(), "%lld %lld\n", each.before, each.after);
    else
      std::fprintf(out.get(), "wrong\n");
    std::fflush(out.get());
  }
}

}  // namespace riffle::bench
