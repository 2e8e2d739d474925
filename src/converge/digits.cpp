// MNIST as `riffle data` fetched it; nothing is downloaded here.
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "converge/data.h"
#include "riffle/error.h"

namespace riffle::convergence {
namespace {

constexpr const char* kSet = "mnist-1.2.6";  // name and version in python/riffle/data/sets.py

std::filesystem::path cache_folder() {
  const auto value = [](const char* name) {
    const char* found = std::getenv(name);
    return std::string(found == nullptr ? "" : found);
  };
  if (!value("RIFFLE_DATA").empty()) return value("RIFFLE_DATA");
  const std::filesystem::path cache = value("XDG_CACHE_HOME").empty()
                                          ? std::filesystem::path(value("HOME")) / ".cache"
                                          : std::filesystem::path(value("XDG_CACHE_HOME"));
  return cache / "riffle" / "data";
}

// Two zero bytes, type (8: bytes), rank, sizes, values.
struct Idx {
  std::vector<std::size_t> sizes;
  std::string values;
};

Idx read_idx(const std::filesystem::path& path, std::size_t rank) {
  const std::string content = read_file(path);
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(content[at]); };
  if (content.size() < 4 + 4 * rank || byte(0) != 0 || byte(1) != 0 || byte(2) != 8 ||
      byte(3) != rank)
    usage_error("{}: is no idx file of bytes with {} dimensions", path.string(), rank);
  Idx idx;
  std::size_t count = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t at = 4 + 4 * i;
    idx.sizes.push_back(std::size_t{byte(at)} << 24 | std::size_t{byte(at + 1)} << 16 |
                        std::size_t{byte(at + 2)} << 8 | std::size_t{byte(at + 3)});
    if (idx.sizes.back() > content.size()) usage_error("{}: cut off", path.string());
    count *= idx.sizes.back();
  }
  idx.values = content.substr(4 + 4 * rank);
  if (idx.values.size() != count)
    usage_error("{}: {} values, its head says {}", path.string(), idx.values.size(), count);
  return idx;
}

Samples read_part(const std::filesystem::path& folder, const std::string& name,
                  std::size_t& width) {
  const std::filesystem::path images_path = folder / (name + "-images-idx3-ubyte");
  const Idx images = read_idx(images_path, 3);
  const Idx labels = read_idx(folder / (name + "-labels-idx1-ubyte"), 1);
  if (images.sizes[0] != labels.sizes[0])
    usage_error("{}: {} images, but {} labels", images_path.string(), images.sizes[0],
                labels.sizes[0]);
  width = images.sizes[1] * images.sizes[2];
  Samples samples;
  samples.features.reserve(images.values.size());
  for (const char pixel : images.values)  // MNIST's mean and deviation
    samples.features.push_back(
        (static_cast<float>(static_cast<unsigned char>(pixel)) / 255 - 0.1307F) / 0.3081F);
  for (const char label : labels.values) {
    if (label < 0 || label > 9) usage_error("{}: label {}", images_path.string(), int{label});
    samples.labels.push_back(label);
  }
  return samples;
}

}  // namespace

std::optional<std::string> digits_folder() {
  const std::filesystem::path folder = cache_folder() / kSet;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(folder / "train-images-idx3-ubyte", ignored)) return {};
  return folder.string();
}

Data read_digits(const std::string& folder) {
  Data data{"digits", 0, 10, {}, {}};
  data.train = read_part(folder, "train", data.width);
  data.test = read_part(folder, "t10k", data.width);
  return data;
}

}  // namespace riffle::convergence
