#pragma once

#include <istream>
#include <string>
#include <vector>

namespace ringmaster::test {

/// The modules in the order of the table in docs/ARCHITECTURE.md. A file may include headers of its own module and of
/// modules above it. A row "folder/..." covers the folder and all folders below it that have no row of their own.
class module_order {
public:
  /// Reads the first table whose header row starts with "module".
  static module_order of(std::istream& architecture);

  /// "path:line: reason" for each line of `text` that includes a header of a module below, or of none.
  std::vector<std::string> complaints(const std::string& path, std::istream& text) const;
  /// The same for each line of `text`, a program outside of the tree, that includes another header of the project than
  /// <ringmaster/...>.
  std::vector<std::string> private_includes(const std::string& path, std::istream& text) const;
  /// The index of a folder's row, from the top, or -1.
  int row_of(const std::string& folder) const;
  const std::vector<std::string>& modules() const { return modules_; }

private:
  std::vector<std::string> modules_;
};

/// "a/b" of "a/b/c.hpp", "" of "c.hpp".
std::string folder_of(const std::string& path);

/// "path:line: reason" for each line of a CMakeLists.txt that has one source and belongs before the line above it.
std::vector<std::string> unsorted_sources(const std::string& path, std::istream& text);

} // namespace ringmaster::test
