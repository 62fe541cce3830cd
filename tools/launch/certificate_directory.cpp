#include "tools/launch/certificate_directory.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/trust/private_file.hpp"
#include "runtime/trust/tls_identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <netdb.h>
#include <random>
#include <sstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ringmaster::launch {

namespace fs = std::filesystem;

namespace {

constexpr size_t pem_file_bytes_max = 1u << 20;
constexpr const char* key_file = "the key file";

caf::expected<std::string> text_of_file(const fs::path& file) {
  std::ifstream in{file};
  std::ostringstream text;
  if (!in || !(text << in.rdbuf()))
    return make_error(errc::io_error, fmt::format("the certificate file {} cannot be read", file.string()));
  return text.str();
}

/// The key first: a certificate without a key is of no use.
caf::error write(const fs::path& certificate, const fs::path& key, const certified_key& what) {
  RETURN_ERROR(create_private_file(key, key_file, what.key));
  RETURN_ERROR(create_private_file(certificate, "the certificate file", what.certificate));
  if (::chmod(certificate.c_str(), S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH) != 0)
    return make_error(errc::io_error, fmt::format("the permissions of {} cannot be set: {}", certificate.string(),
                                                  std::strerror(errno)));
  return caf::none;
}

/// Whether both files exist. Errors: invalid_argument, where one does.
caf::expected<bool> exist(const fs::path& certificate, const fs::path& key) {
  std::error_code ignored;
  const bool has_certificate = fs::exists(certificate, ignored), has_key = fs::exists(key, ignored);
  if (has_certificate != has_key)
    return invalid(fmt::format("{} exists, and {} does not: restore that, or remove the first",
                               (has_certificate ? certificate : key).string(),
                               (has_certificate ? key : certificate).string()));
  return has_certificate;
}

/// The addresses that the name has on this host; none where it is unknown.
std::vector<std::string> addresses_of(const std::string& host) {
  std::vector<std::string> result;
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0)
    return result;
  for (auto* each = found; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0
        && std::strchr(text, '%') == nullptr)
      result.emplace_back(text);
  }
  ::freeaddrinfo(found);
  return result;
}

} // namespace

caf::expected<certificate_directory> certificate_directory::open(const fs::path& where, time_point now) {
  constexpr std::chrono::days authority_length{3650};
  if (::mkdir(where.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return make_error(errc::io_error,
                      fmt::format("the directory {} cannot be made: {}", where.string(), std::strerror(errno)));
  certificate_directory result{where, now};
  const auto key = where / "authority.key";
  TRY(exists, exist(result.authority(), key));
  if (*exists) {
    TRY(certificate_text, text_of_file(result.authority()));
    TRY(key_text, read_private_file(key, key_file, pem_file_bytes_max));
    result.authority_ = {std::move(*certificate_text), std::move(*key_text)};
    return result;
  }
  const auto name = fmt::format("ringmaster-authority-{:08x}", std::random_device{}());
  TRY(made, make_authority(name, certificate_period::starting(now, authority_length)));
  result.authority_ = std::move(*made);
  result.is_new_ = true;
  RETURN_ERROR(write(result.authority(), key, result.authority_));
  return result;
}

caf::expected<certificate_directory::entry> certificate_directory::for_host(const std::string& host,
                                                                            std::chrono::days length) {
  std::vector<std::string> hosts{host};
  const auto add = [&](const std::string& each) {
    if (std::ranges::find(hosts, each) == hosts.end())
      hosts.push_back(each);
  };
  const auto found = addresses_of(host);
  std::ranges::for_each(found, add);
  if (std::ranges::any_of(found, [](auto& x) { return is_own_address(x); }) || host == own_host_name())
    std::ranges::for_each(addresses_of_host(), add);
  for (const auto* each : {"localhost", "127.0.0.1", "::1"})
    add(each);
  return find_or_make({host, role::member, std::move(hosts)}, length);
}

caf::expected<certificate_directory::entry> certificate_directory::for_name(const std::string& name, role as,
                                                                            std::chrono::days length) {
  return find_or_make({name, as, {}}, length);
}

caf::expected<certificate_directory::entry> certificate_directory::find_or_make(const certificate_subject& whose,
                                                                                std::chrono::days length) {
  if (whose.name == "authority" || whose.name.find('/') != std::string::npos)
    return invalid(fmt::format("\"{}\" cannot be the name of a certificate's files: choose another one", whose.name));
  entry result{where_ / (whose.name + ".pem"), where_ / (whose.name + ".key"), false};
  TRY(exists, exist(result.certificate, result.key));
  if (*exists) {
    TRY(certificate, text_of_file(result.certificate));
    TRY(key, read_private_file(result.key, key_file, pem_file_bytes_max));
    const auto usable = tls_identity::of({std::move(*certificate), std::move(*key)}, authority_.certificate,
                                         result.certificate.string());
    if (!usable)
      return invalid(fmt::format("{}: remove it and its key, and run this again", render(usable.error())));
    return result;
  }
  TRY(made, issue(authority_, whose, certificate_period::starting(now_, length)));
  RETURN_ERROR(write(result.certificate, result.key, *made));
  result.is_new = true;
  return result;
}

} // namespace ringmaster::launch
