// Programs as JSON.
#include "property.h"
#include "riffle/program.h"

using namespace riffle;  // NOLINT(google-build-using-namespace): a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto program = fuzz::parsed([&] { return program_from_json(text, "program.json"); });
  if (!program) return 0;
  fuzz::require(print(*program).empty() == program->exchanges.empty(), "a program prints");
  const std::string json = to_json(*program);
  fuzz::require(program_from_json(json, "again") == *program, "a program reads back", json);
  return 0;
}
