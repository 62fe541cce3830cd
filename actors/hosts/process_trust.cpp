#include "actors/hosts/process_trust.hpp"

#include "actors/hosts/connection_watch.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/trust/secret_directory.hpp"

#include <caf/io/middleman.hpp>

#include <cstdlib>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

namespace {

const char* variable_of(const char* name) {
  const auto* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

caf::expected<credentials_ptr> credentials_of(const shared_secret& stored, const std::string& where) {
  TRY(secret, role_secret_of(stored, where));
  return credentials::of(std::move(*secret), "that of " + where);
}

caf::expected<credentials_ptr> credentials_in(const std::string& file) {
  TRY(stored, shared_secret::read(file));
  return credentials_of(*stored, file);
}

/// Whether a process can listen with these. Errors: unauthenticated.
caf::error check_listening(const credentials& own, listener_kind as) {
  const auto mine = own.own.as;
  if (!own.secret || mine == role::member || (mine == role::node && as != listener_kind::coordinator)
      || (mine == role::rank && as != listener_kind::coordinator))
    return caf::none;
  return make_error(errc::unauthenticated,
                    fmt::format("this process has the secret of a {}, {}, and cannot check by it who connects to its "
                                "port of a {}: it needs the cluster's own secret",
                                name_of(mine), own.origin, name_of(as)));
}

} // namespace

process_trust::~process_trust() {
  if (to_remove_.empty() || !of_cluster_)
    return;
  std::error_code ignored; // and another coordinator may have the port by now
  if (const auto stored = shared_secret::read(to_remove_); stored && *stored == *of_cluster_->secret)
    std::filesystem::remove(to_remove_, ignored);
}

process_trust& process_trust::of(caf::actor_system& system) {
  static process_trust insecure{trust_settings{}};
  auto* middleman = system.has_middleman() ? dynamic_cast<watched_middleman*>(&system.middleman()) : nullptr;
  return middleman != nullptr ? middleman->trust() : insecure;
}

credentials_ptr process_trust::keep(shared_secret secret, const std::filesystem::path& file) {
  std::scoped_lock lock{mutex_};
  of_cluster_ = credentials::of({role::member, {}, std::move(secret)}, fmt::format("that of {}", file.string()));
  return of_cluster_;
}

caf::expected<tls_identity_ptr> process_trust::certified() {
  std::scoped_lock lock{mutex_};
  if (certified_)
    return certified_;
  auto files = settings_.tls;
  const auto find = [](std::string& file, const char* variable) {
    const auto* value = variable_of(variable);
    if (file.empty() && value != nullptr)
      file = value;
  };
  find(files.certificate, "RINGMASTER_CERTIFICATE");
  find(files.key, "RINGMASTER_KEY");
  find(files.authority, "RINGMASTER_AUTHORITY");
  if (files.certificate.empty() && files.key.empty() && files.authority.empty())
    return tls_identity_ptr{};
  if (files.certificate.empty() || files.key.empty() || files.authority.empty())
    return make_error(errc::invalid_config,
                      "TLS needs three files: --certificate, --key and --authority (trust.certificate, trust.key, "
                      "trust.authority), which `ringmaster certificates` makes");
  if (settings_.insecure)
    return make_error(errc::invalid_config,
                      "trust.insecure (--insecure) and trust.certificate (--certificate) exclude each other: with "
                      "certificates no secret is needed");
  auto read = tls_identity::read(files);
  if (!read)
    return make_error(errc::invalid_config, render(read.error()));
  certified_ = std::move(*read);
  return certified_;
}

std::string process_trust::encryption() {
  const auto tls = certified();
  if (!tls || *tls == nullptr)
    return {}; // an error shows where it listens
  return settings_.bulk == protection::encrypted ? "TLS 1.3" : "TLS 1.3, bulk data authenticated only (trust.bulk)";
}

caf::expected<credentials_ptr> process_trust::configured() {
  TRY(tls, certified());
  TRY(secret, configured_secret());
  if (*tls == nullptr)
    return secret;
  auto result = *secret ? **secret : credentials{};
  result.tls = std::move(*tls);
  result.of_bulk = settings_.bulk;
  return std::make_shared<const credentials>(std::move(result));
}

caf::expected<credentials_ptr> process_trust::configured_secret() const {
  if (settings_.insecure)
    return no_credentials();
  if (!settings_.secret_file.empty())
    return credentials_in(settings_.secret_file);
  if (const auto* text = variable_of("RINGMASTER_SECRET")) {
    TRY(secret, shared_secret::parse(text, "RINGMASTER_SECRET in the environment"));
    return credentials_of(*secret, "RINGMASTER_SECRET in the environment");
  }
  if (const auto* file = variable_of("RINGMASTER_SECRET_FILE"))
    return credentials_in(file);
  return credentials_ptr{};
}

caf::expected<credentials_ptr> process_trust::for_listening(listener_kind as, uint16_t port) {
  if (as == listener_kind::coordinator)
    is_coordinator_ = true;
  TRY(known, configured());
  if (*known) {
    RETURN_ERROR(check_listening(**known, as));
    if ((*known)->tls && as == listener_kind::coordinator)
      spdlog::info("connections use TLS 1.3, with the certificate {}", (*known)->tls->origin());
    if (settings_.insecure && as == listener_kind::coordinator)
      spdlog::warn("every process that can connect to port {} may use and stop this cluster: trust.insecure", port);
    if (as == listener_kind::coordinator && (*known)->secret) {
      {
        std::scoped_lock lock{mutex_};
        of_cluster_ = *known;
      }
      spdlog::info("the secret of the cluster is {}", (*known)->origin);
      publish(port, *(*known)->secret, true);
    }
    return known;
  }
  if (as == listener_kind::coordinator)
    return of_coordinator(port);
  {
    std::scoped_lock lock{mutex_};
    if (of_cluster_)
      return of_cluster_;
  }
  return of_waiting_nodes();
}

caf::expected<credentials_ptr> process_trust::of_coordinator(uint16_t port) {
  const secret_directory users;
  const auto name = secret_directory::name_for(port);
  const auto tell = [](const std::filesystem::path& file) {
    spdlog::info("the secret of the cluster is in {}; processes of other users and hosts need a copy, named by "
                 "--secret-file (trust.secret-file)",
                 file.string());
  };
  if (settings_.journal_dir.empty() && !settings_.lists_nodes) {
    TRY(found, users.find_or_make(name));
    if (settings_.port_is_chosen)
      to_remove_ = found->file;
    tell(found->file);
    return keep(std::move(found->secret), found->file);
  }
  std::filesystem::path file;
  credentials_ptr result;
  if (settings_.journal_dir.empty()) {
    TRY(found, users.find_or_make(secret_directory::name_for_nodes));
    file = found->file;
    result = keep(std::move(found->secret), file);
  } else {
    file = std::filesystem::path{settings_.journal_dir} / "secret";
    TRY(secret, find_or_make_secret(file));
    result = keep(std::move(*secret), file);
  }
  tell(file);
  publish(port, *result->secret, settings_.port_is_chosen);
  return result;
}

void process_trust::publish(uint16_t port, const shared_secret& secret, bool until_end) {
  auto copy = secret_directory{}.store(secret_directory::name_for(port), secret);
  if (!copy)
    spdlog::warn("processes of this user on this host do not find the secret by the port, and need --secret-file: {}",
                 render(copy.error()));
  else if (until_end)
    to_remove_ = *copy;
}

caf::expected<credentials_ptr> process_trust::of_waiting_nodes() {
  TRY(found, secret_directory{}.find_or_make(secret_directory::name_for_nodes));
  return keep(std::move(found->secret), found->file);
}

/// Nodes obey their coordinator in what they take from no other member.
credentials_ptr process_trust::as_coordinator(credentials_ptr own) const {
  if (!is_coordinator_ || !own->secret || own->own.as != role::member)
    return own;
  return own->derived(role::coordinator);
}

caf::expected<credentials_ptr> process_trust::for_connecting(const endpoint& there, listener_kind whom) {
  TRY(known, configured());
  if (*known)
    return whom == listener_kind::node ? as_coordinator(std::move(*known)) : std::move(*known);
  if (whom != listener_kind::coordinator) {
    std::scoped_lock lock{mutex_};
    if (of_cluster_)
      return as_coordinator(of_cluster_);
  }
  auto found = secret_directory{}.find(secret_directory::name_for(there.port));
  if (found)
    return keep(std::move(found->secret), found->file);
  return make_error(code_of(found.error()),
                    fmt::format("{}. Copy the secret file that the log of the {} at {} names, with `scp -p` from "
                                "another host, and give it by --secret-file (trust.secret-file) or "
                                "RINGMASTER_SECRET_FILE in the environment",
                                render(found.error()), name_of(whom), text_of(there)));
}

} // namespace ringmaster
