#include <gtest/gtest.h>

#include <cstdlib>

#include "converge/data.h"
#include "refusal.h"
#include "temporary_folder.h"

namespace riffle::convergence {
namespace {

std::string idx(const std::vector<unsigned char>& sizes, std::size_t values) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const unsigned char size : sizes)
    text += std::string{'\0', '\0', '\0', static_cast<char>(size)};
  for (std::size_t i = 0; i < values; ++i) text += static_cast<char>(i % 10);
  return text;
}

void write_all(const TemporaryFolder& folder) {
  (void)folder.file("train-images-idx3-ubyte", idx({3, 2, 2}, 12));
  (void)folder.file("train-labels-idx1-ubyte", idx({3}, 3));
  (void)folder.file("t10k-images-idx3-ubyte", idx({2, 2, 2}, 8));
  (void)folder.file("t10k-labels-idx1-ubyte", idx({2}, 2));
}

TEST(Digits, FilesAreReadAndScaled) {
  const TemporaryFolder folder;
  write_all(folder);
  const Data data = read_digits(folder.path().string());
  EXPECT_EQ(data.width, 4U);
  EXPECT_EQ(data.train.labels, (std::vector{0, 1, 2}));
  EXPECT_EQ(data.test.size(), 2U);
  EXPECT_FLOAT_EQ(data.train.features[5], (5.0F / 255 - 0.1307F) / 0.3081F);
}

TEST(Digits, DamagedFilesAreRefusedByName) {
  using testing::HasSubstr;
  const TemporaryFolder folder;
  const auto says = [&] { return refusal([&] { read_digits(folder.path().string()); }); };
  EXPECT_THAT(says(), HasSubstr("train-images-idx3-ubyte"));
  write_all(folder);
  (void)folder.file("train-images-idx3-ubyte", idx({3, 2, 2}, 11));
  EXPECT_THAT(says(), HasSubstr("11 values, its head says 12"));
  (void)folder.file("train-images-idx3-ubyte", "PNG and so on");
  EXPECT_THAT(says(), HasSubstr("no idx file"));
  (void)folder.file("train-images-idx3-ubyte", idx({200, 2, 2}, 12));
  EXPECT_THAT(says(), HasSubstr("cut off"));
  write_all(folder);
  (void)folder.file("t10k-labels-idx1-ubyte", idx({3}, 3));
  EXPECT_THAT(says(), HasSubstr("2 images, but 3 labels"));
}

TEST(Digits, TheFolderIsTheOneOfTheDataCommand) {
  const TemporaryFolder folder;
  ::setenv("RIFFLE_DATA", folder.path().c_str(), 1);
  EXPECT_FALSE(digits_folder());
  std::filesystem::create_directory(folder / "mnist-1.2.6");
  (void)folder.file("mnist-1.2.6/train-images-idx3-ubyte", "");
  EXPECT_EQ(digits_folder(), (folder / "mnist-1.2.6").string());
  ::unsetenv("RIFFLE_DATA");
}

}  // namespace
}  // namespace riffle::convergence
