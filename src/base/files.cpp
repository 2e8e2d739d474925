#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "riffle/error.h"

namespace riffle {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

std::string reason() {
  return std::strerror(errno);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// How a path is shown in one line of an error.
std::string shown(const std::filesystem::path& path) {
  return one_line(path.string());
}

[[noreturn]] void cannot_write(const std::filesystem::path& path, std::string_view why) {
  usage_error("{}: cannot write: {}", shown(path), why);
}

}  // namespace

std::string read_file(const std::filesystem::path& path, Bytes limit) {
  // O_NONBLOCK: opening a named pipe must not wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) usage_error("{}: cannot read: {}", shown(path), reason());
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) usage_error("{}: cannot read: {}", shown(path), reason());
  if (!S_ISREG(status.st_mode)) usage_error("{}: not a regular file", shown(path));
  if (status.st_size > limit.count)
    usage_error("{}: {} is too large (at most {})", shown(path), print(Bytes{status.st_size}),
                print(limit));
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) usage_error("{}: cannot read: {}", shown(path), reason());
    if (got == 0) break;  // it shrank meanwhile
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  // Where the path is a link, the file it leads to is the one to replace; where it is a device or a
  // pipe, a file renamed onto it would destroy it.
  std::error_code error;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  if (error) cannot_write(path, error.message());
  if (std::filesystem::exists(target, error) && !std::filesystem::is_regular_file(target, error))
    cannot_write(path, "not a regular file");
  std::string neighbour = target.string() + ".XXXXXX";
  const Descriptor file(::mkostemp(neighbour.data(), O_CLOEXEC));
  if (file.get() < 0) cannot_write(path, reason());
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (!write_all(file.get(), text) || ::fchmod(file.get(), 0666 & ~mask) != 0 ||
      ::fsync(file.get()) != 0 || ::rename(neighbour.c_str(), target.c_str()) != 0) {
    const std::string why = reason();
    ::unlink(neighbour.c_str());
    cannot_write(path, why);
  }
}

}  // namespace riffle
