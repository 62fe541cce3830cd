#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "tools/launch/certificate_directory.hpp"
#include "tools/launch/hostfile.hpp"
#include "tools/options/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ringmaster {

namespace {

class certificates_call final : public command_call {
  void declare(option_table& table) override {
    table.form("--hosts FILE --out DIR [--days N]");
    table.form("--name NAME [--role ROLE] --out DIR [--days N]");
    table.about("Makes an authority and a certificate for each host, so that connections between processes use TLS "
                "(docs/TRUST.md). What is in DIR stays as it is: only what is missing is made.");
    table.file("--hosts", hosts_).says("FILE", "a hostfile, as caf-run reads it: a host a line");
    table.text("--out", out_).says("DIR", "the directory of the files").offers_directories();
    table.text("--name", name_).says("NAME", "a person or program, in place of hosts, that connects from anywhere");
    table.text("--role", role_)
      .says("ROLE", "what that may do: coordinator, node, rank, client, operator or observer")
      .otherwise("everything");
    table.number("--days", days_, 1, 36'500).says("N", "how long the certificates are valid");
    table.closing("DIR/authority.key signs certificates: it belongs on no other host. Copy DIR/HOST.pem, DIR/HOST.key "
                  "and DIR/authority.pem to each host, and name them by --certificate, --key and --authority. "
                  "Processes read them when they start.");
    table.add_example("ringmaster certificates --hosts hosts --out certificates", "for all hosts of a cluster");
    table.add_example("ringmaster certificates --name alice --role observer --out certificates",
                      "for a person who may look");
  }

  caf::error check() override {
    if (out_.empty())
      return invalid("--out DIR is missing: the directory for the certificates");
    if (hosts_.empty() == name_.empty())
      return invalid("give either --hosts FILE or --name NAME");
    if (name_.empty() && !role_.empty())
      return invalid("--role is for --name NAME: a host's certificate may do everything");
    if (role_.empty())
      return caf::none;
    const auto known = parse_role(role_);
    if (!known)
      return invalid(fmt::format("--role: \"{}\" is none of coordinator, node, rank, client, operator and observer",
                                 role_));
    as_ = *known;
    return caf::none;
  }

  caf::expected<std::set<std::string>> hosts() const {
    TRY(places, launch::read_hostfile(hosts_, 1));
    std::set<std::string> result;
    for (auto& each : *places)
      result.insert(each.host.substr(each.host.find('@') + 1)); // without ssh's user
    return result;
  }

  caf::expected<int> run(const console& to) override {
    std::set<std::string> wanted;
    if (!hosts_.empty()) {
      TRY(read, hosts());
      wanted = std::move(*read);
    }
    const std::chrono::days length{days_};
    TRY(directory, launch::certificate_directory::open(out_, std::chrono::system_clock::now()));
    const auto tell = [&](const std::string& file, bool is_new) {
      fmt::print(to.out, "{} {}\n", is_new ? "made" : "kept", file);
    };
    tell(directory->authority().string(), directory->authority_is_new());
    for (auto& host : wanted) {
      TRY(made, directory->for_host(host, length));
      tell(made->certificate.string(), made->is_new);
    }
    if (!name_.empty()) {
      TRY(made, directory->for_name(name_, as_, length));
      tell(made->certificate.string(), made->is_new);
    }
    return exit_ok;
  }

  std::string hosts_, out_, name_, role_;
  role as_ = role::member;
  uint64_t days_ = 365;
};

} // namespace

tool_command certificates_command() {
  return tool_command::of<certificates_call>("certificates", "makes certificates, with which connections use TLS");
}

} // namespace ringmaster
