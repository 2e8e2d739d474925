#include "measure/linkage.h"

#include <algorithm>
#include <limits>

namespace riffle::measure {
namespace {

double mean_between(const PairTable<double>& distance, const std::vector<int>& a,
                    const std::vector<int>& b) {
  double sum = 0;
  int count = 0;
  for (const int i : a)
    for (const int j : b)
      if (const auto& known = distance.at(i, j)) {
        sum += *known;
        ++count;
      }
  return count > 0 ? sum / count : std::numeric_limits<double>::max();
}

// Of equally near ones the first, so that the answer does not depend on anything else.
std::pair<std::size_t, std::size_t> nearest(const std::vector<std::vector<double>>& means) {
  std::pair<std::size_t, std::size_t> best{0, 1};
  for (std::size_t a = 0; a < means.size(); ++a)
    for (std::size_t b = a + 1; b < means.size(); ++b)
      if (means[a][b] < means[best.first][best.second]) best = {a, b};
  return best;
}

}  // namespace

std::vector<Sets> linkage(const PairTable<double>& distance, const std::vector<int>& items) {
  Sets sets;
  for (const int item : items) sets.push_back({item});
  std::vector<std::vector<double>> means(sets.size(), std::vector<double>(sets.size()));
  for (std::size_t a = 0; a < sets.size(); ++a)
    for (std::size_t b = a + 1; b < sets.size(); ++b)
      means[a][b] = means[b][a] = mean_between(distance, sets[a], sets[b]);
  std::vector<Sets> result(sets.size());
  while (!sets.empty()) {
    Sets& kept = result[sets.size() - 1] = sets;
    std::ranges::sort(kept);
    if (sets.size() == 1) break;
    const auto [a, b] = nearest(means);
    sets[a].insert(sets[a].end(), sets[b].begin(), sets[b].end());
    std::ranges::sort(sets[a]);
    const auto gone = static_cast<std::ptrdiff_t>(b);
    sets.erase(sets.begin() + gone);
    means.erase(means.begin() + gone);
    for (auto& row : means) row.erase(row.begin() + gone);
    for (std::size_t c = 0; c < sets.size(); ++c)
      means[a][c] = means[c][a] = mean_between(distance, sets[a], sets[c]);
  }
  return result;
}

}  // namespace riffle::measure
