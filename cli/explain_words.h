// A strategy's programs in words that a newcomer understands. Everything is read off the data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "riffle/converge.h"
#include "riffle/plan.h"
#include "riffle/verify.h"

namespace riffle::cli {

// A sentence or two for each kind of exchange among `programs`: what travels, when it leaves, when
// it must be there, what it hides under and how it is merged.
std::vector<std::string> exchange_sentences(const std::vector<Program>& programs);

// Broken into lines: the first one begins with `mark`, the others with as many spaces.
std::string wrapped(std::string_view text, int width, std::string_view mark = "");
// Paragraphs of Markdown for a terminal: broken into lines, without the targets of links.
std::string paragraphs(const std::string& markdown, int width);

// How fast workers agree, and how old what they merge may be.
std::string agreement_sentence(const Verification& proof);
std::string staleness_sentence(const Traits& traits);
// What a step is worth, how far noise keeps workers apart, and which rates are too high.
std::vector<std::string> training_sentences(const Candidate& candidate, const Theory& theory,
                                            const Training& training);
// What rounding costs, and what still holds.
std::string rounding_sentence(const RoundingProof& proof);
std::string low_rank_sentence(const LowRankProof& proof);

}  // namespace riffle::cli
