// Files are read with a limit and written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "riffle/units.h"

namespace riffle {

// UsageError naming the file when it is missing, not a regular file or larger than `limit`.
std::string read_file(const std::filesystem::path& path, Bytes limit = mebibytes(256));

// Writes to a neighbour file and renames it, so a reader sees the old or the new text, never half.
// UsageError when that fails (nothing is left behind then), or when the path is a device or a pipe.
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace riffle
