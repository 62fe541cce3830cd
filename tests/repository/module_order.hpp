#pragma once

#include <istream>
#include <string>
#include <vector>

namespace ringmaster::test {

/// The rooms of the house in the order of the table in docs/ARCHITECTURE.md: a file includes headers of its own room
/// and of rooms above it. A row "folder/..." stands for the folder and for what lies below it and has no row of its
/// own.
class module_order {
public:
  /// Reads the first table whose head is "room".
  static module_order of(std::istream& architecture);

  /// A sentence that begins "path:line: " for each line of `text` that includes what stands below, or in no room.
  std::vector<std::string> complaints(const std::string& path, std::istream& text) const;
  /// The number of the row for a folder, from the top, or -1.
  int row_of(const std::string& folder) const;
  const std::vector<std::string>& rooms() const { return rooms_; }

private:
  std::vector<std::string> rooms_;
};

/// "a/b" of "a/b/c.hpp", "" of "c.hpp".
std::string folder_of(const std::string& path);

/// A sentence that begins "path:line: " for each line of a CMakeLists.txt that names a source, alone, which belongs
/// before the one in the line above.
std::vector<std::string> unsorted_sources(const std::string& path, std::istream& text);

} // namespace ringmaster::test
