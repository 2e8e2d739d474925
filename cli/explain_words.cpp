#include "explain_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/text.h"

namespace riffle::cli {
namespace {

std::string what(const Exchange& exchange) {
  if (exchange.low_rank.factor == LowRank::Factor::left)
    return fmt::format("Left factors of gradients (rank {}), and what travels whole,",
                       exchange.low_rank.rank);
  if (exchange.low_rank.factor == LowRank::Factor::right)
    return "Right factors, made with the mean of the left ones,";
  switch (exchange.payload) {
    case Payload::gradient:
      return "Gradients";
    case Payload::weight:
      return "Weights";
    case Payload::buffers:
      return "Buffers";
    case Payload::state:
      break;
  }
  return "The optimizer's state";
}

std::string leaves(Start start) {
  switch (start) {
    case Start::bucket_ready:
      return "as soon as backward has completed a bucket";
    case Start::bucket_stepped:
      return "as soon as a bucket is updated, while backward works on the next";
    case Start::backward_done:
      return "when backward is done";
    case Start::step_done:
      break;
  }
  return "when the step is done";
}

std::string back(const Due& due) {
  switch (due.point) {
    case DuePoint::before_step:
      return due.steps == 0 ? "before the update" : "before the next update";
    case DuePoint::before_forward:
      return "before the next forward uses them";
    case DuePoint::after_step:
      break;
  }
  return due.steps == 1 ? "one step later" : fmt::format("{} steps later", due.steps);
}

std::string hidden_under(const Exchange& exchange) {
  const bool early =
      exchange.start == Start::bucket_ready || exchange.start == Start::bucket_stepped;
  if (exchange.due.point == DuePoint::after_step && exchange.due.steps > 0)
    return fmt::format("hidden under {} whole step{}", exchange.due.steps,
                       exchange.due.steps == 1 ? "" : "s");
  if (exchange.due.point == DuePoint::before_step && exchange.due.steps == 1)
    return "hidden under the whole next forward and backward";
  if (exchange.due.point == DuePoint::before_forward && !early)
    return exchange.collective == Collective::all_gather || exchange.payload == Payload::gradient
               ? "hidden under the next forward, layer by layer"
               : "hidden under nothing but the forward of the layers before";
  if (early) return "hidden under the rest of backward";
  return "hidden under nothing: everybody waits";
}

std::string joins(const Exchange& exchange) {
  switch (exchange.merge.kind) {
    case Merge::Kind::replace:
      if (exchange.collective == Collective::reduce_scatter)
        return "Each worker ends with the mean of its own part.";
      if (exchange.collective == Collective::all_gather)
        return "The parts are brought together again, just before each bucket is updated.";
      if (exchange.collective == Collective::shift)
        return "Each takes the mean of its own and its peer's.";
      if (exchange.collective == Collective::serve)
        return "Each sends the owner of each part what its own has moved, and takes what the owner "
               "holds then.";
      return "Each takes the group's mean.";
    case Merge::Kind::mix:
      return fmt::format("Each keeps {:.0f} % of its own and takes {:.0f} % of the mean.",
                         exchange.merge.xi * 100, (1 - exchange.merge.xi) * 100);
    case Merge::Kind::correct: {
      const bool scaled = exchange.merge.scale != 1 || !exchange.scales.empty();
      return fmt::format(
          "Each adds the difference between the mean and what it had sent{}, so nothing it learned "
          "meanwhile is lost.",
          scaled ? ", times the size of its group, because it speaks for all of it" : "");
    }
    case Merge::Kind::outer:
      break;
  }
  return fmt::format(
      "All take one step of an outer optimizer (rate {}, {}momentum {}) from the last agreed "
      "weights towards the mean{}.",
      exchange.merge.learning_rate, exchange.merge.nesterov ? "" : "heavy-ball ",
      exchange.merge.momentum,
      exchange.merge.xi == 0
          ? ""
          : fmt::format(", and keep {:.0f} % of their own", exchange.merge.xi * 100));
}

// Exchanges of one kind differ in bucket, group and weights only.
bool same_kind(const Exchange& a, const Exchange& b) {
  return a.payload == b.payload && a.collective == b.collective && a.start == b.start &&
         a.due == b.due && a.merge.kind == b.merge.kind && a.low_rank == b.low_rank;
}

}  // namespace

std::string wrapped(std::string_view text, int width, std::string_view mark) {
  std::string lines(mark);
  std::size_t column = mark.size();
  for (const std::string_view word : split(text, ' ')) {
    if (column > mark.size() && column + word.size() > static_cast<std::size_t>(width)) {
      lines.back() = '\n';
      lines += std::string(mark.size(), ' ');
      column = mark.size();
    }
    lines += std::string(word) + " ";
    column += word.size() + 1;
  }
  lines.back() = '\n';
  return lines;
}

std::string paragraphs(const std::string& markdown, int width) {
  static const std::regex link(R"(\[([^\]]*)\]\([^)]*\))");
  const std::string plain = std::regex_replace(markdown, link, "$1");
  std::string text;
  for (const std::string_view line : split(plain, '\n'))
    text += line.empty() ? "\n" : wrapped(line, width);
  return text;
}

std::vector<std::string> exchange_sentences(const std::vector<Program>& programs) {
  std::vector<const Exchange*> kinds;
  int lanes = 1;
  for (const Program& program : programs)
    for (const Exchange& exchange : program.exchanges) {
      lanes = std::max(lanes, exchange.lane + 1);
      if (std::ranges::none_of(kinds, [&](const Exchange* k) { return same_kind(*k, exchange); }))
        kinds.push_back(&exchange);
    }
  std::vector<std::string> sentences;
  for (const Exchange* kind : kinds)
    sentences.push_back(fmt::format("{} leave {} and must be there {}: {}. {}", what(*kind),
                                    leaves(kind->start), back(kind->due), hidden_under(*kind),
                                    joins(*kind)));
  if (lanes > 1)
    sentences.push_back(
        fmt::format("There are {} lanes, so a slow exchange never holds up the others.", lanes));
  return sentences;
}

std::string agreement_sentence(const Verification& proof) {
  if (proof.workers == 1) return "One worker always agrees with itself.";
  if (proof.serving && proof.serving->ahead != 0)
    return fmt::format(
        "Proved in {} orders of events: nothing that is sent is lost and everybody is answered, "
        "whoever is fast; {}.",
        proof.serving->orders,
        proof.serving->ahead < 0
            ? "how far workers are apart is a question of who is fast, there is no bound"
            : fmt::format("who has made t steps has all that others sent in their first t - {}",
                          proof.serving->ahead));
  if (proof.steps_to_consensus == 1)
    return "Proved: after every step all workers hold the same weights.";
  if (proof.steps_to_consensus)
    return fmt::format(
        "Proved: whatever the workers hold, after {} steps without learning all hold exactly {} "
        "(mixing rate 0).",
        *proof.steps_to_consensus, proof.mean_preserved ? "their mean" : "the same");
  const double rate = proof.mixing_rate.value_or(1);
  return fmt::format(
      "Disagreement shrinks to {:.1f} % with every step (mixing rate {:.4f}): to a thousandth in "
      "{:.0f} steps.",
      rate * 100, rate, std::ceil(std::log(1e-3) / std::log(rate)));
}

std::string staleness_sentence(const Traits& traits) {
  if (traits.timed && traits.staleness == 0)
    return "What is merged is as old as the slowest worker makes it: there is no bound.";
  if (traits.staleness == 0) return "Nothing that is merged is out of date.";
  return fmt::format("What is merged may be {} step{} old.", traits.staleness,
                     traits.staleness == 1 ? "" : "s");
}

std::vector<std::string> training_sentences(const Candidate& candidate, const Theory& theory,
                                            const Training& training) {
  std::vector<std::string> sentences{fmt::format(
      "A step counts {:.2f} of one of synchronous SGD (effective step, at a learning rate of {} "
      "with "
      "momentum {}, data {}).",
      candidate.effective_step, training.learning_rate, theory.momentum, training.split)};
  if (!candidate.exact)
    sentences.push_back(fmt::format(
        "Gradients with noise of deviation 1 keep workers {:.3g} apart at that rate where the loss "
        "is nearly flat: the consensus distance that theory predicts for a quadratic of weak "
        "curvature. Curvature pulls them together.",
        training.learning_rate * theory.noise_gain));
  sentences.push_back(
      fmt::format("A quadratic of curvature 1 breaks above a learning rate of {:.2f}; under "
                  "synchronous SGD that is {:.2f}.",
                  theory.rate_bound.value(), 2 * (1 + theory.momentum)));
  for (const std::string& warning : candidate.warnings)
    sentences.push_back(fmt::format("Beware: {}.", warning));
  return sentences;
}

std::string rounding_sentence(const RoundingProof& proof) {
  return fmt::format(
      "Values travel as {}: a rounding is off by at most {:.2g} % of {}; after {} steps the mean "
      "was off by {:.1g} of what values had moved.",
      name_of(proof.wire), proof.error_bound * 100,
      proof.wire == Wire::int8 ? "the largest of 256 values" : "the value", proof.steps,
      proof.drift);
}

std::string low_rank_sentence(const LowRankProof& proof) {
  return fmt::format(
      "Gradients travel as factors of rank {}: after {} steps what was delivered and what is kept "
      "to be sent later were off by {:.1g} of the mean of all gradients.",
      proof.rank, proof.steps, proof.drift);
}

}  // namespace riffle::cli
