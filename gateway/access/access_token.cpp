#include "gateway/access/access_token.hpp"

#include "messages/errc.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <openssl/crypto.h>

namespace ringmaster::gateway {

caf::expected<access_token> access_token::read(const std::filesystem::path& file) {
  std::ifstream in{file};
  std::string line(bytes_max + 2, '\0');
  in.read(line.data(), static_cast<std::streamsize>(line.size()));
  if (in.bad() || (in.gcount() == 0 && !in.eof()))
    return make_error(errc::io_error, fmt::format("cannot read the token file '{}'", file.string()));
  line.resize(static_cast<size_t>(in.gcount()));
  line.erase(std::min(line.find_first_of("\r\n"), line.size()));
  std::error_code none;
  const auto others = std::filesystem::status(file, none).permissions() & std::filesystem::perms::others_all;
  if (!none && others != std::filesystem::perms::none)
    spdlog::warn("every user of this host can read the token file '{}': chmod 600 would prevent it", file.string());
  return of(std::move(line), fmt::format("the token file '{}'", file.string()));
}

caf::expected<access_token> access_token::of(std::string text, const std::string& source) {
  if (text.size() < bytes_min || text.size() > bytes_max)
    return invalid(fmt::format("{}: its first line must have {} to {} characters, not {}; `openssl rand -hex 24` makes "
                               "a good one",
                               source, bytes_min, bytes_max, text.size()));
  if (!std::ranges::all_of(text, [](char x) { return x > ' ' && x < '\x7f'; }))
    return invalid(fmt::format("{}: a token has visible ASCII characters only, and no blank", source));
  return access_token{std::move(text)};
}

bool access_token::is_presented_in(std::string_view authorization) const {
  constexpr std::string_view scheme = "bearer ";
  return lower_case(std::string{authorization.substr(0, scheme.size())}) == scheme
         && equals(authorization.substr(scheme.size()));
}

bool access_token::equals(std::string_view presented) const {
  return presented.size() == text_.size() && CRYPTO_memcmp(presented.data(), text_.data(), text_.size()) == 0;
}

} // namespace ringmaster::gateway
