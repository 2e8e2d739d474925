// DeepFM on Criteo as in DS-Sync's experiments: embeddings of 10, three hidden layers of 400 with
// batch norm and dropout. Guo et al., arXiv:1703.04247.
#include <fmt/format.h>

#include <array>
#include <numeric>

#include "model/zoo/models.h"

namespace riffle::zoo {
namespace {

// Values of the 13 numeric (squared logarithm, rounded) and 26 categorical fields of the Criteo
// challenge set, those seen fewer than 10 times being one value of their field.
constexpr std::array<std::int64_t, 39> kFields{
    49,   101,   126,    45,     223,  118,  84,    76,     95, 9,     30,    40,     75,
    1458, 555,   193949, 138801, 306,  19,   11970, 634,    4,  42646, 5178,  192773, 3175,
    27,   11422, 181075, 11,     4654, 2032, 5,     189657, 18, 16,    59697, 86,     45571};

}  // namespace

Net deepfm() {
  constexpr std::int64_t width = 10;
  constexpr std::int64_t fields = kFields.size();
  const std::int64_t values = std::accumulate(kFields.begin(), kFields.end(), std::int64_t{0});
  Net net;
  const Shape embedded = net.embedding("embedding", values, width, fields);
  net.embedding("linear", values, 1, fields, true);
  net.elementwise("fm", embedded);  // sums of squares and squares of sums
  Shape x = net.flatten(embedded);
  for (int i = 0; i < 3; ++i) {
    x = net.linear(fmt::format("mlp.{}.linear", i), x, 400);
    x = net.batch_norm(fmt::format("mlp.{}.bn", i), x);
    x = net.dropout(net.relu(x));
  }
  net.loss(net.linear("mlp.output", x, 1));
  return net;
}

}  // namespace riffle::zoo
