#pragma once

#include <caf/error.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ringmaster {

/// One option of a command, or its positional argument: what it sets, and how help describes it. Made by a table.
class option {
public:
  using setter = std::function<caf::error(const std::string& value)>;

  /// What shell completion offers for the value.
  enum class offer : uint8_t { nothing, words, file, directory };

  /// The name of the value, and its purpose. "{words}" in the purpose is replaced by the allowed words.
  option& says(std::string value_word, std::string purpose);
  /// The purpose alone: of a flag, or of an option whose value has a name already.
  option& says(std::string purpose);
  /// What applies where the option is not given, if that is not its target's value.
  option& otherwise(std::string text);
  /// Another name for it: "-b".
  option& also(std::string name);
  /// The usage line names it. The command itself checks that it was given.
  option& needed();
  /// It may be given any number of times.
  option& many();
  /// The allowed words, or frequent ones if others are allowed.
  option& offers(std::vector<std::string> words);
  /// The same for a command line that has `word` as a positional argument.
  option& offers_beside(std::string word, std::vector<std::string> words);
  option& offers_files();
  option& offers_directories();

  const std::string& name() const noexcept { return names_.front(); }
  const std::vector<std::string>& names() const noexcept { return names_; }
  bool is_flag() const noexcept { return flag_; }
  bool is_needed() const noexcept { return needed_; }
  /// Whether --help shows it. --help-all shows every option.
  bool is_common() const noexcept { return common_; }
  /// "--ranks N", "-b, --min-bytes SIZE", "FILE..."
  std::string label() const;
  /// The purpose and, in parentheses, the default.
  std::string purpose() const;
  /// "[--ranks N]", "--svg FILE", "[KIND]", "FILE..."
  std::string usage() const;
  offer offered() const noexcept { return offer_; }
  const std::vector<std::string>& words() const noexcept { return words_; }
  const std::map<std::string, std::vector<std::string>>& words_beside() const noexcept { return words_beside_; }

private:
  friend class option_table;

  std::vector<std::string> names_; ///< Empty for a positional argument.
  std::string value_word_, purpose_, otherwise_;
  std::vector<std::string> words_;
  std::map<std::string, std::vector<std::string>> words_beside_;
  offer offer_ = offer::nothing;
  bool flag_ = false, needed_ = false, many_ = false, common_ = false, given_ = false;
  setter set_;
};

} // namespace ringmaster
