// Runs a fuzz target over the files of the folders that are its arguments, without libFuzzer.
#include <filesystem>

#include "base/files.h"
#include "property.h"

int main(int count, char** arguments) {
  int files = 0;
  for (int i = 1; i < count; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      const std::string text = riffle::read_file(entry.path());
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      ++files;
    }
  std::printf("%d seeds\n", files);
  return files > 0 ? 0 : 1;
}
