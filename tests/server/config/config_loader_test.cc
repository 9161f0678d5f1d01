#include "server/config/config_loader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "server/config/function_command.h"
#include "server/config/settings.h"
#include "server/settings/executor_settings.h"

namespace torpor::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

std::string ErrorOf(const std::string& yaml) {
  return std::string(ParseConfig(yaml, "/etc/torpor/config.yaml").status().message());
}

TEST(ConfigLoaderTest, ReadsEveryKindOfSetting) {
  const auto config = ParseConfig(R"(
version: v1
run_dir: run
http_address: 127.0.0.1:0
metrics_address: ""
gpus: [0, 2]
driver_reserve: 512MiB
socket_mode: 0666
max_connections: 10
log_format: json
policy: lru
max_waiting: 100
too_late: refuse
tenants:
  - name: mail
    weight: 2.5
functions:
  - name: digits
    upstream: 127.0.0.1:9001
    memory_limit: 1.5GiB
    deadline: 80ms
    percentile: 0.9
    priority: -2
    max_waiting: 7
    keep_alive: 1m
    upstream_timeout: 2m
    token_file: tokens/digits
    max_in_flight: 2
    gpus: 4
    durability: none
    tenant: mail
)",
                                  "/etc/torpor/config.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->run_dir, "/etc/torpor/run");
  EXPECT_EQ(config->client_socket, "/etc/torpor/run/functions/torpor.sock");
  EXPECT_EQ(config->admin_socket, "/etc/torpor/run/admin/admin.sock");
  EXPECT_EQ(config->router.http_address, "127.0.0.1:0");
  EXPECT_EQ(config->router.metrics_address, "");
  EXPECT_THAT(config->gpus, ElementsAre(0, 2));
  EXPECT_EQ(config->device.driver_reserve, 512 * kMiB);
  EXPECT_EQ(config->socket_mode, 0666u);
  EXPECT_EQ(config->router.max_connections, 10);
  EXPECT_EQ(config->log.format, LogFormat::kJson);
  EXPECT_EQ(config->scheduling.policy, "lru");
  EXPECT_EQ(config->scheduling.max_waiting, 100);
  EXPECT_EQ(config->scheduling.too_late, LateRequests::kRefuse);
  EXPECT_EQ(config->tenants.at("mail").weight, 2.5);
  const FunctionConfig& digits = config->functions.at("digits");
  EXPECT_EQ(digits.upstream, "127.0.0.1:9001");
  EXPECT_EQ(digits.memory_limit, 1536 * kMiB);
  EXPECT_EQ(digits.deadline, std::chrono::milliseconds(80));
  EXPECT_EQ(digits.percentile, 0.9);
  EXPECT_EQ(digits.priority, -2);
  EXPECT_EQ(digits.max_waiting, 7);
  EXPECT_EQ(digits.keep_alive, std::chrono::minutes(1));
  EXPECT_EQ(digits.upstream_timeout, std::chrono::minutes(2));
  EXPECT_EQ(digits.token_file, "/etc/torpor/tokens/digits");
  EXPECT_EQ(digits.max_in_flight, 2);
  EXPECT_EQ(digits.gpus, 4);
  EXPECT_FALSE(digits.survives());
  EXPECT_EQ(digits.tenant, "mail");
}

TEST(ConfigLoaderTest, AFunctionMayHaveSeveralInstances) {
  const auto config = ParseConfig(R"(version: v1
functions:
  - name: digits
    memory_limit: 1GiB
    instances:
      - {name: b, token_file: tokens/b, upstream: 127.0.0.1:9002}
      - {name: a, token_file: tokens/a}
  - {name: encoder, memory_limit: 1GiB, token_file: e, upstream: 127.0.0.1:9003}
)",
                                  "/etc/torpor/config.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const FunctionConfig& digits = config->functions.at("digits");
  const std::vector<InstanceConfig> instances = InstancesOf(digits);
  ASSERT_EQ(instances.size(), 2u);
  EXPECT_EQ(instances[0], (InstanceConfig{"a", "", "/etc/torpor/tokens/a"}));
  EXPECT_EQ(instances[1], (InstanceConfig{"b", "127.0.0.1:9002", "/etc/torpor/tokens/b"}));
  EXPECT_EQ(FullNameOf(digits, instances[1]), "digits/b");
  const FunctionConfig& encoder = config->functions.at("encoder");
  const InstanceConfig only = {"encoder", "127.0.0.1:9003", "/etc/torpor/e"};
  EXPECT_THAT(InstancesOf(encoder), ElementsAre(only));
  EXPECT_EQ(FullNameOf(encoder, only), "encoder");
}

TEST(ConfigLoaderTest, AFunctionMayHaveACommand) {
  const auto config = ParseConfig(R"(version: v1
functions:
  - name: digits
    memory_limit: 1GiB
    token_file: d
    command: [/usr/bin/python3, "serve, all.py", "--name=a b", ""]
    env: [A=1, "B=x y=z"]
    user: nobody:nogroup
    stop_grace: 3s
  - {name: encoder, memory_limit: 1GiB, token_file: e, command: /srv/encoder --fast}
)",
                                  "/etc/torpor/config.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const FunctionConfig& digits = config->functions.at("digits");
  EXPECT_THAT(digits.command, ElementsAre("/usr/bin/python3", "serve, all.py", "--name=a b", ""));
  EXPECT_THAT(digits.environment, ElementsAre("A=1", "B=x y=z"));
  EXPECT_EQ(digits.user, "nobody:nogroup");
  EXPECT_EQ(digits.stop_grace, std::chrono::seconds(3));
  EXPECT_THAT(config->functions.at("encoder").command, ElementsAre("/srv/encoder", "--fast"));
  // What torpord keeps of a changed function is text.
  for (const auto& setting : FunctionSettings()) {
    FunctionConfig again;
    EXPECT_TRUE(setting.set(again, setting.text(digits)).ok()) << setting.key;
    EXPECT_EQ(setting.text(again), setting.text(digits));
  }
}

TEST(ConfigLoaderTest, WrongCommandsAreTold) {
  const std::map<std::string, std::string> wrong = {
      {"command: serve.py", "absolute path"},
      {"command: [[a]]", "command: expected one value"},
      {"command: '[1]'", "no list of words"},
      {"command: /a\n    env: [B]", "is not NAME=value"},
      {"command: /a\n    env: [1B=2]", "is not NAME=value"},
      {"command: /a\n    env: [TORPOR_TOKEN=x]", "torpord itself sets TORPOR_TOKEN"},
      {"user: 'a:'", "is no user"},
      {"user: 'a:b:c'", "is no user"},
  };
  for (const auto& [line, message] : wrong) {
    const auto config = ParseConfig(
        "version: v1\nfunctions:\n  - name: f\n    memory_limit: 1GiB\n"
        "    token_file: f\n    " +
            line + "\n",
        "c.yaml");
    ASSERT_FALSE(config.ok()) << line;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(message)) << line;
  }
}

TEST(FunctionCommand, RootStartsItAsAnotherUserOnly) {
  FunctionConfig function;
  EXPECT_EQ(CheckUser(function, 0), absl::OkStatus()) << "no command";
  function.command = {"/a"};
  EXPECT_THAT(std::string(CheckUser(function, 0).message()), HasSubstr("user is missing"));
  EXPECT_EQ(CheckUser(function, 1000), absl::OkStatus());
  const auto with = [&](const std::string& user, uid_t own) {
    function.user = user;
    return std::string(CheckUser(function, own).message());
  };
  EXPECT_EQ(with("nobody", 0), "");
  EXPECT_EQ(with("65534:0", 0), "");
  EXPECT_THAT(with("root", 0), HasSubstr("never runs as root"));
  EXPECT_THAT(with("0", 0), HasSubstr("never runs as root"));
  EXPECT_THAT(with("no-such-user", 0), HasSubstr("there is no user no-such-user"));
  EXPECT_THAT(with("nobody:no-such-group", 0), HasSubstr("there is no group no-such-group"));
  EXPECT_THAT(with("nobody", 1000), HasSubstr("start torpord as root"));
  EXPECT_EQ(with("nobody", 65534), "");
}

TEST(ConfigLoaderTest, ThePoliciesConstantsAreSettings) {
  const auto config = ParseConfig(
      "version: v1\nalpha_start: 0.25\nalpha_period: 10s\nheavy_ratio: 2\noutcome_window: 5m\n",
      "config.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const scheduler::PolicyConstants expected = {.alpha_start = 0.25,
                                               .alpha_period = std::chrono::seconds(10),
                                               .heavy_ratio = 2,
                                               .outcome_window = std::chrono::minutes(5)};
  EXPECT_EQ(config->scheduling.constants, expected);
}

TEST(ConfigLoaderTest, AGroupsSizeIsMeasuredUnlessItIsGiven) {
  const auto group_bytes = [](const std::string& setting) {
    return ParseConfig("version: v1\n" + setting, "config.yaml")->device.swap_group_bytes;
  };
  EXPECT_EQ(group_bytes(""), 0U);
  EXPECT_EQ(group_bytes("swap_group_bytes: auto\n"), 0U);
  EXPECT_EQ(group_bytes("swap_group_bytes: 512KiB\n"), 512 * kKiB);
}

TEST(ConfigLoaderTest, PartitionsHaveTheSlotsThatAreNamed) {
  const auto sizes = [](const std::string& setting) {
    return ParseConfig("version: v1\n" + setting, "config.yaml")->device.partition_sizes;
  };
  EXPECT_EQ(sizes(""), std::nullopt);
  EXPECT_EQ(sizes("partition_sizes: auto\n"), std::nullopt);
  EXPECT_THAT(sizes("partition_sizes: none\n"), Optional(IsEmpty()));
  EXPECT_THAT(sizes("partition_sizes: 4MiB\n"), Optional(ElementsAre(4 * kMiB)));
  EXPECT_THAT(sizes("partition_sizes: [20MiB, 2MiB, 64MiB]\n"),
              Optional(ElementsAre(2 * kMiB, 20 * kMiB, 64 * kMiB)));
  EXPECT_THAT(sizes("chunk_bytes: 8MiB\npartition_sizes: [2MiB]\n"), Optional(SizeIs(1)))
      << "nothing to say of a mode that has none";
}

TEST(ConfigLoaderTest, OffIsNoDuration) {
  EXPECT_EQ(ParseConfig("version: v1\n", "config.yaml")->scheduling.idle_write_back,
            std::chrono::seconds(1));
  EXPECT_EQ(
      ParseConfig("version: v1\nidle_write_back: off\n", "config.yaml")->scheduling.idle_write_back,
      Duration::zero());
  EXPECT_EQ(ParseConfig("version: v1\nidle_write_back: 30ms\n", "config.yaml")
                ->scheduling.idle_write_back,
            std::chrono::milliseconds(30));
}

TEST(ConfigLoaderTest, AVersionAloneIsAConfiguration) {
  const auto config = ParseConfig("version: v1\n", "config.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->client_socket, "/run/torpor/functions/torpor.sock");
  EXPECT_TRUE(config->functions.empty());
}

struct BadFile {
  const char* name;
  const char* yaml;
  const char* message;
};

class BadFileTest : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadFileTest, SaysWhereWhatAndHowToMendIt) {
  EXPECT_EQ(ErrorOf(GetParam().yaml), GetParam().message);
}

const BadFile kBadFiles[] = {
    {"Empty", "", "/etc/torpor/config.yaml: expected settings, such as `version: v1`"},
    {"NoMap", "- a\n", "/etc/torpor/config.yaml:1: expected settings, such as `version: v1`"},
    {"NoVersion", "log_level: info\n",
     "/etc/torpor/config.yaml:1: version is missing; write `version: v1` as the first line"},
    {"OtherVersion", "version: v2\n",
     "/etc/torpor/config.yaml:1: version: this release reads v1 only; write `version: v1`"},
    {"FormerSetting",
     "version: v1\nanonymous_function: a\nfunctions:\n  - name: a\n    memory_limit: 0\n"
     "    keeps_state: true\n",
     "/etc/torpor/config.yaml:6: keeps_state: no such setting any more; leave it out, since all "
     "functions keep their state (durability: eviction), or write durability: none"},
    {"UnknownKeyNearAnother", "version: v1\nhtp_address: 127.0.0.1:1\n",
     "/etc/torpor/config.yaml:2: htp_address: no such setting; did you mean http_address?"},
    {"UnknownKey", "version: v1\nbananas: 3\n",
     "/etc/torpor/config.yaml:2: bananas: no such setting; see docs/configuration.md"},
    {"KeyTwice", "version: v1\nlog_level: info\nlog_level: warn\n",
     "/etc/torpor/config.yaml:3: log_level stands twice; keep one"},
    {"Size", "version: v1\ndriver_reserve: 12 parsecs\n",
     "/etc/torpor/config.yaml:2: driver_reserve: \"12 parsecs\" is not a size; write auto, or a "
     "number and a unit, for example 2MiB"},
    {"NegativeSize", "version: v1\ndriver_reserve: -1GiB\n",
     "/etc/torpor/config.yaml:2: driver_reserve: \"-1GiB\" is not a size; write auto, or a "
     "number and a unit, for example 2MiB"},
    {"NeitherSizeNorAuto", "version: v1\nswap_group_bytes: automatic\n",
     "/etc/torpor/config.yaml:2: swap_group_bytes: \"automatic\" is not a size; write auto, or a "
     "number and a unit, for example 2MiB"},
    {"SizeNoMultiple", "version: v1\nchunk_bytes: 3MiB\n",
     "/etc/torpor/config.yaml:2: chunk_bytes: 3MiB does not fit; use a multiple of 2097152 bytes"},
    {"SlotsThatLeaveMuchOver", "version: v1\npartition_sizes: [2MiB, 24MiB]\n",
     "/etc/torpor/config.yaml:2: partition_sizes: slots of 25165824 bytes do not fit a partition; "
     "use multiples of 2MiB that fill 64MiB but for a sixteenth, for example 2MiB, 20MiB or 32MiB"},
    {"SlotsOfNoChunk", "version: v1\npartition_sizes: 1MiB\n",
     "/etc/torpor/config.yaml:2: partition_sizes: slots of 1048576 bytes do not fit a partition; "
     "use multiples of 2MiB that fill 64MiB but for a sixteenth, for example 2MiB, 20MiB or 32MiB"},
    {"SlotsOfOtherChunks",
     "version: v1\naddress_mode: translate\nchunk_bytes: 4MiB\npartition_sizes: 2MiB\n",
     "/etc/torpor/config.yaml: partition_sizes: 2097152 is no multiple of chunk_bytes, which is "
     "4194304; leave it out, or make chunk_bytes smaller"},
    {"SlotsTwice", "version: v1\npartition_sizes: [2MiB, 2MiB]\n",
     "/etc/torpor/config.yaml:2: partition_sizes: 2MiB stands twice; name each once"},
    {"NoSlots", "version: v1\npartition_sizes: []\n",
     "/etc/torpor/config.yaml:2: partition_sizes: names no size; expected sizes, none or auto"},
    {"NoSizeOfSlots", "version: v1\npartition_sizes: [large]\n",
     "/etc/torpor/config.yaml:2: partition_sizes: \"large\" is not a size; write a number and a "
     "unit, for example 512MiB or 2GiB"},
    {"DurationWithoutUnit", "version: v1\nqueue_timeout: 30\n",
     "/etc/torpor/config.yaml:2: queue_timeout: \"30\" is not a duration; write a number and a "
     "unit, for example 80ms or 2s"},
    {"NoDuration", "version: v1\nqueue_timeout: 0s\n",
     "/etc/torpor/config.yaml:2: queue_timeout: 0s is too short; use more than 0"},
    {"IdleWriteBack", "version: v1\nidle_write_back: never\n",
     "/etc/torpor/config.yaml:2: idle_write_back: \"never\" is not a duration; write a number and "
     "a "
     "unit, for example 80ms or 2s, or off"},
    {"Address", "version: v1\nhttp_address: localhost\n",
     "/etc/torpor/config.yaml:2: http_address: \"localhost\" is not an address; write host:port, "
     "for example 127.0.0.1:8000"},
    {"PortTooLarge", "version: v1\nhttp_address: localhost:65536\n",
     "/etc/torpor/config.yaml:2: http_address: \"localhost:65536\" is not an address; write "
     "host:port, for example 127.0.0.1:8000"},
    {"GpuTwice", "version: v1\ngpus: [1, 1]\n",
     "/etc/torpor/config.yaml:2: gpus: 1 stands twice; name each once"},
    {"GpuNoNumber", "version: v1\ngpus: [all]\n",
     "/etc/torpor/config.yaml:2: gpus: \"all\" is not a whole number; write digits, for example 4 "
     "or 0x10"},
    {"CountOutOfRange", "version: v1\nmax_connections: 0\n",
     "/etc/torpor/config.yaml:2: max_connections: 0 is out of range; use 1 to 1000000"},
    {"LogLevel", "version: v1\nlog_level: loud\n",
     "/etc/torpor/config.yaml:2: log_level: unknown value \"loud\"; expected trace, debug, info, "
     "warn, error or off"},
    {"UnknownPolicy", "version: v1\npolicy: best\n",
     "/etc/torpor/config.yaml:2: policy: unknown value \"best\"; expected torpor, torpor-plus, "
     "fifo, "
     "edf, random, lru or simple-swap"},
    {"PolicyOfTheSimulator", "version: v1\npolicy: native\n",
     "/etc/torpor/config.yaml:2: policy: \"native\" is for torpor-sim only, since it never evicts; "
     "expected torpor, torpor-plus, fifo, edf, random, lru or simple-swap"},
    {"TooLate", "version: v1\ntoo_late: drop\n",
     "/etc/torpor/config.yaml:2: too_late: unknown value \"drop\"; "
     "expected auto, serve, serve-last or refuse"},
    {"Percentile", "version: v1\nfunctions:\n  - {name: a, memory_limit: 1GiB, percentile: 98}\n",
     "/etc/torpor/config.yaml:3: percentile: \"98\" is not a share; write a number above 0 and "
     "below 1, for example 0.98"},
    {"PercentileNearOne",
     "version: v1\nfunctions:\n  - {name: a, memory_limit: 1GiB, percentile: 0.99999}\n",
     "/etc/torpor/config.yaml:3: percentile: \"0.99999\" is above 0.9999: one late request would "
     "weigh more than ten thousand in time; write at most 0.9999"},
    {"AlphaStart", "version: v1\nalpha_start: 1.5\n",
     "/etc/torpor/config.yaml:2: alpha_start: \"1.5\" is not a number from 0 to 1; write one, for "
     "example 0"},
    {"HeavyRatio", "version: v1\nheavy_ratio: much\n",
     "/etc/torpor/config.yaml:2: heavy_ratio: \"much\" is not a number from 1 to 1000; write one, "
     "for "
     "example 1"},
    {"OutcomeWindow", "version: v1\noutcome_window: 10ms\n",
     "/etc/torpor/config.yaml:2: outcome_window: 10ms is too short; use at least 1s"},
    {"MapForAScalar", "version: v1\nlog_level: {a: b}\n",
     "/etc/torpor/config.yaml:2: log_level: expected one value (trace|debug|info|warn|error|off)"},
    {"FunctionsNoList", "version: v1\nfunctions:\n  digits: {}\n",
     "/etc/torpor/config.yaml:3: functions: expected a list; begin each function with `- name:`"},
    {"FunctionNoMap", "version: v1\nfunctions:\n  - digits\n",
     "/etc/torpor/config.yaml:3: functions: expected `- name: ...` and its settings"},
    {"FunctionWithoutLimit", "version: v1\nfunctions:\n  - name: a\n    token_file: t\n",
     "/etc/torpor/config.yaml:3: memory_limit is missing; every function needs one"},
    {"FunctionWithoutToken", "version: v1\nfunctions:\n  - name: a\n    memory_limit: 1GiB\n",
     "/etc/torpor/config.yaml:3: token_file is missing; function a needs one, or be the "
     "anonymous_function"},
    {"FunctionName", "version: v1\nfunctions:\n  - {name: A_b, memory_limit: 1GiB}\n",
     "/etc/torpor/config.yaml:3: name: \"A_b\" is not a name; use 1 to 63 of a-z, 0-9 and "
     "-, no - at either end"},
    {"FunctionTwice",
     "version: v1\nfunctions:\n  - {name: a, memory_limit: 1GiB, token_file: t}\n"
     "  - {name: a, memory_limit: 1GiB, token_file: t}\n",
     "/etc/torpor/config.yaml:4: another function a stands above already; give each its own name"},
    {"FunctionSetting",
     "version: v1\nfunctions:\n  - {name: a, memory_limit: 1GiB, tokenfile: t}\n",
     "/etc/torpor/config.yaml:3: tokenfile: no such setting; did you mean token_file?"},
    {"InstanceSetting",
     "version: v1\nfunctions:\n  - name: a\n    memory_limit: 1GiB\n    instances:\n"
     "      - {name: x, token_file: t, upstrem: 'h:1'}\n",
     "/etc/torpor/config.yaml:6: upstrem: no such setting; did you mean upstream?"},
    {"InstanceTwice",
     "version: v1\nfunctions:\n  - name: a\n    memory_limit: 1GiB\n    instances:\n"
     "      - {name: x, token_file: t}\n      - {name: x, token_file: u}\n",
     "/etc/torpor/config.yaml:7: another instance x stands above already; give each its own name"},
    {"InstanceWithoutToken",
     "version: v1\nfunctions:\n  - name: a\n    memory_limit: 1GiB\n    instances: [{name: x}]\n",
     "/etc/torpor/config.yaml:5: token_file is missing; every instance needs one"},
    {"InstancesAndAToken",
     "version: v1\nfunctions:\n  - name: a\n    memory_limit: 1GiB\n    token_file: t\n"
     "    instances: [{name: x, token_file: u}]\n",
     "/etc/torpor/config.yaml:3: instances have a token_file and an upstream each; drop the "
     "function's own"},
    {"AnonymousInstances",
     "version: v1\nanonymous_function: a\nfunctions:\n  - name: a\n    memory_limit: 1GiB\n"
     "    instances: [{name: x, token_file: u}]\n",
     "/etc/torpor/config.yaml:4: instances are told apart by tokens, which the anonymous_function "
     "has not; drop instances, or name another anonymous_function"},
    {"InstancesNoList",
     "version: v1\nfunctions:\n  - name: a\n    memory_limit: 1GiB\n    instances: x\n",
     "/etc/torpor/config.yaml:5: instances: expected a list; begin each instance with `- name:`"},
    {"TenantUnknown",
     "version: v1\ntenants:\n  - name: mail\nfunctions:\n"
     "  - {name: a, memory_limit: 1GiB, token_file: t, tenant: male}\n",
     "/etc/torpor/config.yaml:5: tenant: there is no tenant male; add it under tenants"},
    {"TenantTwice", "version: v1\ntenants:\n  - name: mail\n  - name: mail\n",
     "/etc/torpor/config.yaml:4: another tenant mail stands above already; give each its own name"},
    {"TenantWithoutName", "version: v1\ntenants:\n  - weight: 2\n",
     "/etc/torpor/config.yaml:3: name is missing; every tenant needs one"},
    {"TenantsNoList", "version: v1\ntenants: mail\n",
     "/etc/torpor/config.yaml:2: tenants: expected a list; begin each tenant with `- name:`"},
    {"TenantsWeight", "version: v1\ntenants:\n  - {name: mail, weight: 0}\n",
     "/etc/torpor/config.yaml:3: weight: \"0\" is not a weight; write a number from 0.001 to 1000"},
    {"AnonymousUnknown", "version: v1\nanonymous_function: guest\n",
     "/etc/torpor/config.yaml: anonymous_function: there is no function guest; add it under "
     "functions"},
    {"OneSocketForBoth", "version: v1\nclient_socket: /a\nadmin_socket: /a\n",
     "/etc/torpor/config.yaml: client_socket and admin_socket are one path; give each its own"},
    {"Everything", "version: v1\nlog_level: loud\nqueue_timeout: 3\n",
     "/etc/torpor/config.yaml:2: log_level: unknown value \"loud\"; expected trace, debug, info, "
     "warn, error or off\n"
     "/etc/torpor/config.yaml:3: queue_timeout: \"3\" is not a duration; write a number and a "
     "unit, for example 80ms or 2s"},
};

INSTANTIATE_TEST_SUITE_P(All, BadFileTest, ::testing::ValuesIn(kBadFiles),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ConfigLoaderTest, BrokenYamlNamesTheLine) {
  EXPECT_THAT(ErrorOf("version: v1\nlog_level: [\n"),
              HasSubstr("/etc/torpor/config.yaml:3: not valid YAML: "));
}

TEST(ConfigLoaderTest, ASocketPathThatDoesNotFitIsRefused) {
  EXPECT_THAT(ErrorOf("version: v1\nrun_dir: /" + std::string(120, 'x') + "\n"),
              HasSubstr("longer than a socket's path may be (107 bytes)"));
}

class SourcesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "config-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

std::function<std::optional<std::string>(const std::string&)> Environment(
    const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

TEST_F(SourcesTest, FlagsGoBeforeTheEnvironmentAndItBeforeTheFile) {
  ConfigSources sources;
  sources.file = Write("c.yaml", "version: v1\nlog_level: warn\nhttp_address: a:1\nrun_dir: /r\n");
  sources.environment =
      Environment({{"TORPOR_LOG_LEVEL", "error"}, {"TORPOR_HTTP_ADDRESS", "b:2"}});
  sources.flags = {{"http_address", "c:3"}};
  const auto config = LoadConfig(sources);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->run_dir, "/r");
  EXPECT_EQ(config->log.level, LogLevel::kError);
  EXPECT_EQ(config->router.http_address, "c:3");
}

TEST_F(SourcesTest, PathsBecomeAbsolute) {
  ConfigSources sources;
  sources.flags = {{"run_dir", "some/../run"}, {"cuda_library_dir", ""}};
  const auto config = LoadConfig(sources);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->run_dir, (std::filesystem::current_path() / "run").string());
  EXPECT_EQ(config->cuda_library_dir, "");
}

TEST_F(SourcesTest, MistakesNameTheVariableAndTheFlag) {
  ConfigSources sources;
  sources.environment = Environment({{"TORPOR_LOG_LEVEL", "loud"}});
  sources.flags = {{"gpus", "x"}};
  EXPECT_EQ(LoadConfig(sources).status().message(),
            "TORPOR_LOG_LEVEL: unknown value \"loud\"; expected trace, debug, info, warn, error or "
            "off\n--gpus: \"x\" is not a whole number; write digits, for example 4 or 0x10");
}

TEST_F(SourcesTest, AMissingFileIsNamed) {
  ConfigSources sources;
  sources.file = folder_ / "none.yaml";
  const absl::Status status = LoadConfig(sources).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("none.yaml: cannot be read"));
}

TEST_F(SourcesTest, CheckFilesFindsMissingAndEmptyTokens) {
  Write("token", "secret-of-the-function-a\n");
  Write("empty", "\n");
  ConfigSources sources;
  sources.file = Write("c.yaml",
                       "version: v1\nfunctions:\n"
                       "- {name: a, memory_limit: 1GiB, token_file: token}\n"
                       "- {name: b, memory_limit: 1GiB, token_file: empty}\n"
                       "- {name: c, memory_limit: 1GiB, token_file: none}\n");
  const auto config = LoadConfig(sources);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(CheckFiles(*config).message(),
            (folder_ / "empty").string() + ": is empty; write the token of function b into it\n" +
                (folder_ / "none").string() + ": cannot be read; function c needs its token here");
}

std::string TextOf(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

TEST(DocumentationTest, TheExampleIsAConfiguration) {
  const std::filesystem::path example = TORPOR_SOURCE_DIR "/deploy/torpor.yaml";
  const auto config = ParseConfig(TextOf(example), example);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->functions.size(), 2u);
}

template <typename Target>
void ExpectTextsAreRead(const Settings<Target>& settings) {
  for (const Setting<Target>& setting : settings) {
    Target target;
    if (setting.is_required) continue;
    EXPECT_TRUE(setting.set(target, setting.DefaultText()).ok()) << setting.key;
    EXPECT_TRUE(target == Target()) << setting.key << " is not " << setting.DefaultText();
  }
}

TEST(DocumentationTest, DefaultsAreAsTheHelpSays) {
  ExpectTextsAreRead(NodeSettings());
  ExpectTextsAreRead(TenantSettings());
  ExpectTextsAreRead(FunctionSettings());
  ExpectTextsAreRead(InstanceSettings());
}

TEST(DocumentationTest, ExecutorsKnowTheSettingsOfTheirGpu) {
  for (const Setting<DeviceSettings>& setting : DeviceSettingTable()) {
    EXPECT_NE(FindSetting(NodeSettings(), setting.key), nullptr) << setting.key;
    EXPECT_NE(FindSetting(ExecutorSettingTable(), setting.key), nullptr) << setting.key;
  }
}

TEST(DocumentationTest, EverySettingIsExplained) {
  const std::string text = TextOf(TORPOR_SOURCE_DIR "/docs/configuration.md");
  const auto expect_row = [&](const auto& setting) {
    std::string row = fmt::format("| `{}` | ", setting.key);
    if (!setting.DefaultText().empty()) row += fmt::format("`{}` | ", setting.DefaultText());
    EXPECT_THAT(text, HasSubstr(row));
  };
  for (const auto& setting : NodeSettings()) expect_row(setting);
  for (const auto& setting : TenantSettings()) expect_row(setting);
  for (const auto& setting : FunctionSettings()) expect_row(setting);
  for (const auto& setting : InstanceSettings()) expect_row(setting);
  EXPECT_THAT(text, HasSubstr("| `instances` | "));
}

}  // namespace
}  // namespace torpor::server
