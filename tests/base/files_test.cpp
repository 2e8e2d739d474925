#include "base/files.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "refusal.h"
#include "temporary_folder.h"

namespace riffle {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ReadFile, GivesTheWholeText) {
  const TemporaryFolder folder;
  const std::string text = std::string("a\0b\n", 4) + std::string(100'000, 'x');
  EXPECT_EQ(read_file(folder.file("f", text)), text);
  EXPECT_EQ(read_file(folder.file("empty", "")), "");
}

TEST(ReadFile, RefusesWhatIsNoReadableFile) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::filesystem::path& path) {
    std::string message = refusal([&] { read_file(path); });
    EXPECT_THAT(message, StartsWith(path.string() + ": "));
    return message;
  };
  EXPECT_THAT(refused(folder / "missing"), EndsWith("cannot read: No such file or directory"));
  EXPECT_THAT(refused(folder.path()), EndsWith("not a regular file"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refused(folder / "pipe"), EndsWith("not a regular file"));
  EXPECT_THAT(refused("/dev/zero"), EndsWith("not a regular file"));
}

TEST(ReadFile, RefusesAHugeFileWithoutReadingIt) {
  const TemporaryFolder folder;
  const std::filesystem::path sparse = folder.file("huge.json", "");
  std::filesystem::resize_file(sparse, std::uintmax_t{1} << 40);  // takes no space on the disk
  EXPECT_THAT(refusal([&] { read_file(sparse); }),
              HasSubstr("huge.json: 1024 GiB is too large (at most 256 MiB)"));
  EXPECT_THAT(refusal([&] { read_file(folder.file("f", "12345"), Bytes{4}); }),
              HasSubstr("5.00 B is too large (at most 4.00 B)"));
}

TEST(ReadFile, NamesThatBreakLinesAreShownOnOne) {
  refusal([] { read_file("no\nsuch\tfile"); });
}

TEST(WriteFile, WritesReplacesAndKeepsLinks) {
  const TemporaryFolder folder;
  write_file(folder / "f", "first");
  write_file(folder / "f", "second");
  EXPECT_EQ(read_file(folder / "f"), "second");
  std::filesystem::create_symlink(folder / "f", folder / "link");
  write_file(folder / "link", "third");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "f"), "third");
  EXPECT_EQ(folder.entries(), 2);
}

TEST(WriteFile, KeepsTheModeOthersNeed) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(022);
  write_file(folder / "f", "text");
  ::umask(before);
  struct stat status{};
  ASSERT_EQ(::stat((folder / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644U);
}

TEST(WriteFile, AMissingFolderIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal([&] { write_file(folder / "none/f", "text"); }),
              EndsWith("none/f: cannot write: No such file or directory"));
  EXPECT_EQ(folder.entries(), 0);
}

TEST(WriteFile, DevicesPipesAndFoldersAreNotReplaced) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder / "folder");
  std::filesystem::create_symlink("/dev/null", folder / "null");
  for (const char* name : {"pipe", "folder", "null"})
    EXPECT_THAT(refusal([&] { write_file(folder / name, "text"); }),
                EndsWith("cannot write: not a regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(folder.entries(), 3);
}

// What a child process does; exits with 0 when the refusal ends like this and the old text is
// there, alone.
[[noreturn]] void write_and_exit(const TemporaryFolder& folder, std::string_view refusal_ends) {
  std::string message;
  try {
    write_file(folder / "f", std::string(100'000, 'x'));
  } catch (const UsageError& error) {
    message = error.what();
  }
  const bool kept = read_file(folder / "f") == "old" && folder.entries() == 1;
  std::_Exit(message.ends_with(refusal_ends) && kept ? 0 : 1);
}

TEST(WriteFileDeathTest, AReadOnlyFolderKeepsTheOldText) {
  const TemporaryFolder folder;
  (void)folder.file("f", "old");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  const auto without_privileges = [&] {
    constexpr uid_t nobody = 65534;  // root may write anywhere
    if (::geteuid() == 0 && ::setuid(nobody) != 0) std::_Exit(2);
    write_and_exit(folder, "cannot write: Permission denied");
  };
  EXPECT_EXIT(without_privileges(), testing::ExitedWithCode(0), "");
}

TEST(WriteFileDeathTest, ADiskThatFillsUpKeepsTheOldText) {
  const TemporaryFolder folder;
  (void)folder.file("f", "old");
  const auto on_a_small_disk = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};  // no file may grow beyond, as if the disk were full then
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(2);
    write_and_exit(folder, "cannot write: File too large");
  };
  EXPECT_EXIT(on_a_small_disk(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace riffle
