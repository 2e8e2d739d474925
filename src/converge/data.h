// Samples with labels, to learn from and to be judged by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace riffle::convergence {

struct Samples {
  std::vector<float> features;  // a row for each sample
  std::vector<int> labels;
  [[nodiscard]] std::size_t size() const { return labels.size(); }
};

struct Data {
  std::string name;
  std::size_t width = 0;  // features of a sample
  int classes = 0;
  Samples train;
  Samples test;
};

// Each class is three clouds at random places: no line separates the classes, a small network does.
// `noise` is the deviation within a cloud, where clouds are about 1 apart in each coordinate.
Data make_clouds(std::size_t width, int classes, std::size_t samples, std::uint64_t seed);

// Where `riffle data` keeps MNIST, if it is there: RIFFLE_DATA, else riffle/data in the user's
// cache folder.
std::optional<std::string> digits_folder();
// MNIST's four idx files; UsageError naming the file that is missing or damaged.
Data read_digits(const std::string& folder);

}  // namespace riffle::convergence
