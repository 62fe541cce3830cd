#pragma once

#include <caf/error.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ringmaster {

/// One option of a command, or what stands without a dash: what it sets, and what is said of it. Made by a table.
class option {
public:
  using setter = std::function<caf::error(const std::string& value)>;

  /// What a shell offers in the value's place.
  enum class offer : uint8_t { nothing, words, file, directory };

  /// How the value is called, and what it is for; in the text "{words}" stands for all that it may be.
  option& says(std::string value_word, std::string purpose);
  /// The same of one that has no value, or whose value's word says enough.
  option& says(std::string purpose);
  /// What is so where the option is not given, where that is not the value that its target had.
  option& otherwise(std::string text);
  /// Another name for it: "-b".
  option& also(std::string name);
  /// Help names it in the first line. Whether it is there, the command checks itself, and knows what to say.
  option& needed();
  /// Any number of them.
  option& many();
  /// What it may be, or, for an open set, what it often is.
  option& offers(std::vector<std::string> words);
  /// The same where the line has that word among those without a dash.
  option& offers_beside(std::string word, std::vector<std::string> words);
  option& offers_files();
  option& offers_directories();

  const std::string& name() const noexcept { return names_.front(); }
  const std::vector<std::string>& names() const noexcept { return names_; }
  bool is_flag() const noexcept { return flag_; }
  bool is_needed() const noexcept { return needed_; }
  /// "--ranks N", "-b, --min-bytes SIZE", "FILE..."
  std::string label() const;
  /// The purpose and, in brackets, what is so otherwise.
  std::string purpose() const;
  /// "[--ranks N]", "--svg FILE", "[KIND]", "FILE..."
  std::string usage() const;
  offer offered() const noexcept { return offer_; }
  const std::vector<std::string>& words() const noexcept { return words_; }
  const std::map<std::string, std::vector<std::string>>& words_beside() const noexcept { return words_beside_; }

private:
  friend class option_table;

  std::vector<std::string> names_; ///< Empty: of what stands without a dash.
  std::string value_word_, purpose_, otherwise_;
  std::vector<std::string> words_;
  std::map<std::string, std::vector<std::string>> words_beside_;
  offer offer_ = offer::nothing;
  bool flag_ = false, needed_ = false, many_ = false, given_ = false;
  setter set_;
};

} // namespace ringmaster
