#include "actors/hosts/process_trust.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "tools/options/commands.hpp"
#include "tools/options/configured_call.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace ringmaster {

namespace {

constexpr const char* role_words[] = {"node", "rank", "client", "operator", "observer"};

class secret_call final : public configured_call {
private:
  void declare_options(option_table& table) override {
    table.about("Derives the secret of a role from the cluster's. Who has it can do what the role may, and can derive "
                "neither the cluster's secret nor that of another role from it. Nothing is stored: the same command "
                "always gives the same secret. docs/TRUST.md has a table of what each role may do.");
    table.word("--role", role_, {std::begin(role_words), std::end(role_words)}).says("ROLE", "{words}").needed();
    table.text("--name", name_)
      .says("NAME", "whom it is for: the journal and messages have the name, and what a client makes belongs to it")
      .otherwise("none");
    table.text("--out", out_)
      .says("FILE", "write it to a new file that only you can read, instead of printing it")
      .offers_files();
    key_option(table, "--secret-file", "trust.secret-file")
      .says("FILE", "the cluster's secret")
      .otherwise("RINGMASTER_SECRET or RINGMASTER_SECRET_FILE in the environment")
      .offers_files();
    table.common({"--role", "--name", "--out", "--secret-file"});
    table.add_example("ringmaster secret --role observer --secret-file log/secret --out observer.secret",
                      "a file for `ringmaster status --secret-file observer.secret`");
  }

  caf::error check() override {
    const auto as = parse_role(role_);
    return as ? check_secret_name(*as, name_) : invalid("name the role: --role observer");
  }

  caf::expected<int> run(const console& to) override {
    TRY(own, process_trust{cfg_.trust()}.configured());
    if (!*own || !(*own)->secret)
      return invalid("name the cluster's secret by --secret-file: the log of its coordinator says where it is");
    if ((*own)->own.as != role::member)
      return make_error(
        errc::permission_denied,
        fmt::format("the secret is that of a {}, {}, and others are derived from the cluster's own only",
                    name_of((*own)->own.as), (*own)->origin));
    const auto as = *parse_role(role_);
    const role_secret result{as, name_, derive_secret(*(*own)->secret, as, name_)};
    if (out_.empty()) {
      fmt::print(to.out, "{}\n", result.text());
      return exit_ok;
    }
    TRY(stored, shared_secret::of(result.text(), "the secret"));
    RETURN_ERROR(stored->create(out_));
    fmt::print(to.out, "{} has the secret of the role {}\n", out_, text_of(peer_identity{as, name_}));
    return exit_ok;
  }

  std::string role_, name_, out_;
};

} // namespace

tool_command secret_command() {
  return tool_command::of<secret_call>("secret", "derives the secret of a role from the cluster's");
}

} // namespace ringmaster
