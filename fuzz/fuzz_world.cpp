// Worlds as JSON, with the groups made of them.
#include "property.h"
#include "riffle/world.h"

using namespace riffle;  // NOLINT(google-build-using-namespace): a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto world = fuzz::parsed([&] { return world_from_json(text, "world.json"); });
  if (!world) return 0;
  const std::string json = to_json(*world);
  fuzz::require(world_from_json(json, "again") == *world, "a world reads back", json);
  const Partition racks = world->racks();
  validate(racks, world->ranks());
  fuzz::require(!print(racks).empty(), "racks print");
  return 0;
}
