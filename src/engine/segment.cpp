#include "engine/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

#include "riffle/error.h"
#include "riffle/units.h"

namespace riffle::engine {

namespace {

constexpr std::size_t shared_addresses = std::size_t{64} << 30;
constexpr std::size_t local_addresses = std::size_t{4} << 30;

std::byte* map(int fd, std::size_t addresses, const char* what) {
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* base = mmap(nullptr, addresses, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED)
    usage_error("cannot map {} ({} of addresses): {}", what,
                print(Bytes{static_cast<std::int64_t>(addresses)}), std::strerror(errno));
  return static_cast<std::byte*>(base);
}

// What the machine can still give without swapping; a huge number where it does not say.
std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::size_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kibibytes << 10;
  }
  return SIZE_MAX;
}

}  // namespace

Segment::Segment(Segment&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      fd_(std::exchange(other.fd_, -1)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(capacity_, other.capacity_);
  std::swap(fd_, other.fd_);
  return *this;
}

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, capacity_);
  if (fd_ >= 0) close(fd_);
}

Segment Segment::create(const Layout& layout) {
  const int fd = memfd_create("riffle", MFD_CLOEXEC);
  if (fd < 0) usage_error("cannot create shared memory: {}", std::strerror(errno));
  Segment segment(nullptr, 0, fd);  // closes it should the next lines throw
  if (ftruncate(fd, static_cast<off_t>(layout.heap())) != 0)
    usage_error("cannot size shared memory: {}", std::strerror(errno));
  segment.base_ = map(fd, shared_addresses, "shared memory");
  segment.capacity_ = shared_addresses;
  new (segment.base_) SegmentHeader{};
  segment.header().end.store(layout.heap());
  return segment;
}

Segment Segment::open(int pid, int fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  const int own = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0)
    usage_error(
        "cannot open the shared memory of process {} ({}): {}; workers of one host must run "
        "as one user and see each other's processes",
        pid, path, std::strerror(errno));
  Segment segment(nullptr, 0, own);
  segment.base_ = map(own, shared_addresses, "a peer's shared memory");
  segment.capacity_ = shared_addresses;
  close(std::exchange(segment.fd_, -1));
  return segment;
}

Segment Segment::local(const Layout& layout) {
  Segment segment(map(-1, local_addresses, "memory"), local_addresses, -1);
  new (segment.base_) SegmentHeader{};
  segment.header().end.store(layout.heap());
  return segment;
}

void Segment::grow(std::size_t end) {
  const std::size_t old = header().end.load(std::memory_order_relaxed);
  if (end <= old) return;
  if (end > capacity_)
    usage_error("a worker's shared memory is limited to {}",
                print(Bytes{static_cast<std::int64_t>(capacity_)}));
  if (fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(end)) != 0)
    usage_error("cannot grow shared memory to {}: {}", print(Bytes{static_cast<std::int64_t>(end)}),
                std::strerror(errno));
  back(old, end - old);
  header().end.store(end, std::memory_order_release);
}

void Segment::back(std::size_t offset, std::size_t bytes) {
  const std::size_t left = available_memory();
  const Bytes wanted{static_cast<std::int64_t>(bytes)};
  if (bytes > left)
    usage_error("not enough memory for a buffer of {}: {} available", print(wanted),
                print(Bytes{static_cast<std::int64_t>(left)}));
  if (fd_ >= 0 && fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0)
    usage_error("not enough shared memory for a buffer of {}: {}", print(wanted),
                std::strerror(errno));
}

void Segment::discard(std::size_t offset, std::size_t bytes) noexcept {
  if (fd_ < 0)
    madvise(base_ + offset, bytes, MADV_DONTNEED);
  else
    fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(bytes));
}

}  // namespace riffle::engine
