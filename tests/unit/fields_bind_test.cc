// Goal: a YAML text becomes the message it says, with defaults, or all its problems at their
// places. Method: one file per problem code with its printed form as a golden file; messages
// compared field by field; declarations checked against themselves.
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "labrack/v1/config.pb.h"
#include "labrack/v1/playbook.pb.h"
#include "proto/fields/declaration.h"
#include "proto/fields/fields.h"
#include "proto/fields/scalar.h"
#include "tests/unit/golden.h"

namespace labrack::fields {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kSmallest =
    "playbook: small\n"
    "stacks: {one: {host: {dir: {}}}}\n"
    "workloads: {pages: {sync_pages: {}}}\n";

template <typename Message>
struct Bound {
  config::Document document;
  config::Problems problems;
  Places places;
  Message message;
  bool ok = false;

  std::string Text() const {
    return config::RenderAll(problems, document.text, config::Colour::kNever);
  }
};

template <typename Message = v1::Playbook>
Bound<Message> BindText(const std::string& text, const std::string& file = "test.yaml") {
  Bound<Message> bound;
  config::ReadYaml(file, text, config::Limits(), bound.document, bound.problems);
  if (bound.document.checkable) {
    bound.ok =
        Bind(bound.document, bound.document.root, bound.message, bound.places, bound.problems);
  }
  return bound;
}

std::vector<std::string> Codes(const config::Problems& problems) {
  std::vector<std::string> codes;
  for (const config::Problem& problem : problems.list()) codes.push_back(problem.code);
  return codes;
}

class FieldsGoldenTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FieldsGoldenTest, ProblemsPrintAsTheirGoldenFile) {
  const std::string code = GetParam();
  const auto bound = BindText(ReadText(GoldenPath(code + ".yaml")), code + ".yaml");
  EXPECT_FALSE(bound.problems.empty());
  EXPECT_THAT(Codes(bound.problems), ::testing::Each(code));
  ExpectGolden(code + ".txt", bound.Text());
}

INSTANTIATE_TEST_SUITE_P(Fields, FieldsGoldenTest,
                         ::testing::Values("LR201", "LR202", "LR203", "LR204", "LR205", "LR206",
                                           "LR207", "LR208", "LR209", "LR210"),
                         [](const auto& info) { return std::string(info.param); });

TEST(BindTest, SixMistakesAreSixErrors) {
  const auto bound = BindText(ReadText(GoldenPath("six.yaml")), "six.yaml");
  EXPECT_EQ(bound.problems.total(), 6u);
  std::set<std::string> codes;
  for (const config::Problem& problem : bound.problems.list()) {
    codes.insert(problem.code);
    EXPECT_GT(problem.span.begin.line, 0u);
    EXPECT_FALSE(problem.helps.empty()) << problem.message;
  }
  EXPECT_THAT(codes, SizeIs(5));
  ExpectGolden("six.txt", bound.Text());
}

TEST(BindTest, DefaultsAreFilledIn) {
  const auto bound = BindText(kSmallest);
  ASSERT_TRUE(bound.ok) << bound.Text();
  const v1::Playbook& playbook = bound.message;
  EXPECT_EQ(playbook.trials(), 6u);
  EXPECT_DOUBLE_EQ(playbook.margin(), 0.03);
  EXPECT_EQ(playbook.lost_after(), 900'000'000'000);
  ASSERT_TRUE(playbook.has_disks());
  EXPECT_EQ(playbook.disks().size(), 1ULL << 30);
  EXPECT_EQ(playbook.disks().kind(), v1::DISK_KIND_FILE);
  ASSERT_TRUE(playbook.has_hosts());
  EXPECT_EQ(playbook.hosts().min(), 1u);
  EXPECT_EQ(playbook.hosts().max(), 0u);
  EXPECT_EQ(playbook.timeouts().build(), 300'000'000'000);
  ASSERT_THAT(playbook.stacks(), SizeIs(1));
  EXPECT_EQ(playbook.stacks(0).name(), "one");
  EXPECT_EQ(playbook.stacks(0).if_unsupported(), v1::IF_UNSUPPORTED_REFUSE);
  EXPECT_EQ(playbook.stacks(0).host().kind_case(), v1::HostStack::kDir);
  const v1::SyncPagesWorkload& pages = playbook.workloads(0).sync_pages();
  EXPECT_EQ(pages.size(), 2048u);
  EXPECT_EQ(pages.verify(), v1::VERIFY_ALL);
  EXPECT_FALSE(pages.direct());
  EXPECT_THAT(Check(playbook), IsEmpty());
}

TEST(BindTest, MessagesThatCannotBeMadeOfDefaultsStayAbsent) {
  const auto bound =
      BindText("playbook: p\nstacks: {one: {host: {dir: {}}}}\nworkloads: {r: {random: {}}}\n");
  ASSERT_TRUE(bound.ok) << bound.Text();
  EXPECT_FALSE(bound.message.workloads(0).random().has_stop());
  EXPECT_TRUE(bound.message.workloads(0).random().direct());
  const auto controller = BindText<v1::ControllerConfig>("state: /var/lib/labrack\n");
  ASSERT_TRUE(controller.ok) << controller.Text();
  EXPECT_FALSE(controller.message.has_tls());
  EXPECT_EQ(controller.message.agents_listen(), "127.0.0.1:7481");
}

TEST(BindTest, WhatIsWrittenWinsOverDefaultsEvenWhenItIsZero) {
  const auto bound = BindText(
      "playbook: p\nstacks: {one: {host: {dir: {}}}}\n"
      "workloads: {r: {random: {direct: false, read: 0%, think: 0s}}}\nmargin: 0%\n");
  ASSERT_TRUE(bound.ok) << bound.Text();
  EXPECT_FALSE(bound.message.workloads(0).random().direct());
  EXPECT_EQ(bound.message.workloads(0).random().read(), 0);
  EXPECT_EQ(bound.message.margin(), 0);
  const auto controller = BindText<v1::ControllerConfig>("state: /s\nhttp_listen: ''\n");
  ASSERT_TRUE(controller.ok) << controller.Text();
  EXPECT_EQ(controller.message.http_listen(), "");
  EXPECT_THAT(Check(controller.message), IsEmpty());
}

TEST(BindTest, EveryShapeIsRead) {
  const auto bound = BindText(
      "playbook: shapes\n"
      "hosts: {match: {role: bench, rack: 07}, min: 2}\n"
      "stacks:\n"
      "  b: {host: {btrfs: {data: raid1, mount_options: [noatime, \"x y\"]}}}\n"
      "  a: {host: {ext4: {}}, if_unsupported: skip}\n"
      "workloads:\n"
      "  files: {files: {steps: [create, delete]}}\n"
      "  run:\n"
      "    exec:\n"
      "      command: [sh, -c, no]\n"
      "      figures:\n"
      "        speed: {match: '([0-9]+) MB/s', better: lower}\n"
      "vars: {size: 4KiB, word: \"\"}\n"
      "matrix: {block: [4KiB, 8KiB], depth: [1]}\n"
      "exclude: [{stack: a, with: {block: 4KiB}}]\n"
      "gates:\n"
      "- {faster: a, than: b, on: files, by: 1.5x}\n"
      "- {verified: all}\n");
  ASSERT_TRUE(bound.ok) << bound.Text();
  const v1::Playbook& playbook = bound.message;
  EXPECT_EQ(playbook.hosts().match().at("rack"), "07");  // the field decides: a text
  EXPECT_EQ(playbook.stacks(0).name(), "b");             // in the order written
  EXPECT_THAT(playbook.stacks(0).host().btrfs().mount_options(), ElementsAre("noatime", "x y"));
  EXPECT_THAT(playbook.workloads(0).files().steps(),
              ElementsAre(v1::FILES_STEP_CREATE, v1::FILES_STEP_DELETE));
  const v1::ExecWorkload& exec = playbook.workloads(1).exec();
  EXPECT_THAT(exec.command(), ElementsAre("sh", "-c", "no"));
  EXPECT_EQ(exec.figures(0).name(), "speed");
  EXPECT_EQ(exec.figures(0).better(), v1::BETTER_LOWER);
  EXPECT_EQ(playbook.vars(0).name(), "size");
  EXPECT_EQ(playbook.vars(0).value(), "4KiB");
  EXPECT_EQ(playbook.vars(1).value(), "");
  EXPECT_THAT(playbook.matrix(0).values(), ElementsAre("4KiB", "8KiB"));
  EXPECT_EQ(playbook.exclude(0).with().at("block"), "4KiB");
  EXPECT_DOUBLE_EQ(playbook.gates(0).by(), 1.5);
  EXPECT_EQ(playbook.gates(1).verified(), v1::GATE_VERIFIED_ALL);
  EXPECT_THAT(Check(playbook), IsEmpty());

  const auto begins = [&](const std::string& path) { return bound.places.at(path).begin; };
  EXPECT_EQ(begins(""), (config::Position{1, 1}));
  EXPECT_EQ(begins("hosts.match.role"), (config::Position{2, 23}));
  EXPECT_EQ(begins("stacks.a#key"), (config::Position{5, 3}));
  EXPECT_EQ(begins("stacks.b.host.btrfs.mount_options[1]"), (config::Position{4, 60}));
  EXPECT_EQ(begins("workloads.run.exec.figures.speed.match"), (config::Position{12, 24}));
  EXPECT_EQ(begins("matrix.block[1]"), (config::Position{14, 24}));
  EXPECT_EQ(begins("gates[0].by"), (config::Position{17, 39}));
  EXPECT_EQ(begins("gates[1]"), (config::Position{18, 3}));
}

TEST(BindTest, AWrongParentMutesItsChildren) {
  const auto bound = BindText(
      "playbook: p\nstacks: !all x\nworkloads: [{sync_pages: {size: 4k}}]\ndisks: &d {size: 4k}\n");
  EXPECT_THAT(Codes(bound.problems), ElementsAre("LR110", "LR111", "LR201", "LR206"));
}

TEST(BindTest, AMisspeltRequiredFieldIsSaidOnce) {
  const auto bound = BindText("playbok: p\nstacks: {one: {host: {dir: {}}}}\nworkload: {}\n");
  EXPECT_THAT(Codes(bound.problems), ElementsAre("LR203", "LR203")) << bound.Text();
}

TEST(BindTest, ProblemsStopAtTheBoundButAreCounted) {
  std::string text = kSmallest;
  for (int i = 0; i < 40'000; ++i) text += "zz" + std::to_string(i) + "zz: 1\n";
  const auto bound = BindText(text);
  EXPECT_EQ(bound.problems.total(), 40'000u);
  EXPECT_THAT(bound.problems.list(), SizeIs(config::Problems::kKeptMax));
}

TEST(BindTest, ALongTextWithAPatternIsRefusedNotMatched) {
  const auto bound = BindText("playbook: " + std::string(500'000, 'a') + "\n");
  EXPECT_THAT(Codes(bound.problems), Contains("LR209"));
}

TEST(CheckTest, SaysWhatBindWouldSay) {
  v1::Playbook playbook;
  playbook.set_trials(2000);
  playbook.set_margin(std::numeric_limits<double>::quiet_NaN());
  playbook.add_stacks()->set_name("Bad Name");
  v1::Workload& random = *playbook.add_workloads();
  random.set_name("r");
  random.mutable_random()->set_block(1);
  random.mutable_random()->set_cache(static_cast<v1::Cache>(99));
  v1::Workload& twin = *playbook.add_workloads();
  twin.set_name("r");
  EXPECT_THAT(Check(playbook),
              ::testing::IsSupersetOf({
                  "playbook: is missing",
                  "trials: 2000 is too large; it must be 1 to 1000",
                  "margin: nan% is no number; it must be 0% to 100%",
                  "stacks[0].name: `Bad Name` does not match [a-z0-9][a-z0-9._-]{0,62}",
                  "workloads.r.random.block: 1B is too small; it must be 512B to 16MiB",
                  "workloads.r.random.cache: is none of `cold` and `warm`",
                  "workloads.r.random.file: 0B is too small; it must be 4KiB to 64TiB",
                  "workloads[1].name: `r` is there twice",
              }));
}

TEST(CheckTest, IsBounded) {
  v1::Playbook playbook = BindText(kSmallest).message;
  for (int i = 0; i < 100; ++i) {
    v1::Gate& gate = *playbook.add_gates();
    gate.set_by(0.5);
  }
  const std::vector<std::string> problems = Check(playbook);
  EXPECT_THAT(problems, SizeIs(kCheckedMax + 1));
  EXPECT_EQ(problems.back(), "... and 50 more");
  for (int i = 0; i < 1000; ++i) playbook.add_gates();
  EXPECT_THAT(Check(playbook), ElementsAre("gates: holds 1100 items; at most 1000 are taken"));
}

TEST(FillDefaultsTest, MakesWhatBindMakes) {
  v1::Playbook made;
  made.set_playbook("small");
  v1::Stack& stack = *made.add_stacks();
  stack.set_name("one");
  stack.mutable_host()->mutable_dir();
  v1::Workload& workload = *made.add_workloads();
  workload.set_name("pages");
  workload.mutable_sync_pages();
  FillDefaults(made);
  google::protobuf::util::MessageDifferencer differencer;
  std::string difference;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(made, BindText(kSmallest).message)) << difference;
}

TEST(FormatFieldTest, ReadsAsYamlAndBindsAgain) {
  const auto bound = BindText(
      "playbook: p\n"
      "stacks: {one: {host: {ext4: {mount_options: ['a: b', -x]}}}}\n"
      "workloads: {r: {random: {read: 70%, block: 8KiB, stop: {duration: 90s}}}}\n"
      "hosts: {match: {role: bench}}\n"
      "matrix: {size: [4KiB]}\n");
  ASSERT_TRUE(bound.ok) << bound.Text();
  const auto format = [&](const char* name) {
    return FormatField(bound.message, *v1::Playbook::descriptor()->FindFieldByName(name));
  };
  EXPECT_EQ(format("playbook"), "p");
  EXPECT_EQ(format("margin"), "3%");
  EXPECT_EQ(format("lost_after"), "15min");
  EXPECT_EQ(format("matrix"), "{size: [4KiB]}");
  EXPECT_THAT(format("disks"), ::testing::StartsWith("{count: 1, size: 1GiB, kind: file"));
  std::string again;
  for (const FieldDescriptor* field : WritableFields(*v1::Playbook::descriptor())) {
    const bool there = field->is_repeated() || field->message_type() != nullptr ||
                       !IsZero(GetScalar(bound.message, *field));
    if (there) again += field->name() + ": " + format(field->name().c_str()) + "\n";
  }
  const auto twice = BindText(again);
  ASSERT_TRUE(twice.ok) << twice.Text();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(bound.message, twice.message))
      << again;
}

TEST(LoadConfigFileTest, ReadsDaemonFilesAndSaysAllProblems) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("labrack-fields-" + std::to_string(getpid()));
  std::ofstream(path) << "controller: 127.0.0.1:7481\nstate: /tmp/x\nlabels: {role: bench}\n";
  v1::AgentConfig agent;
  config::Problems problems;
  std::string text;
  EXPECT_TRUE(LoadConfigFile(path.string(), agent, problems, text));
  EXPECT_EQ(agent.labels().at("role"), "bench");
  EXPECT_EQ(agent.metrics_listen(), "127.0.0.1:7483");
  std::ofstream(path) << "controller: a\ncontroller: b\nstat: /tmp/x\nallow_exec: yes\n";
  EXPECT_FALSE(LoadConfigFile(path.string(), agent, problems, text));
  EXPECT_THAT(Codes(problems), ElementsAre("LR113", "LR203", "LR206"));
  EXPECT_THAT(config::RenderAll(problems, text, config::Colour::kNever),
              HasSubstr("3 errors; nothing was started."));
  std::filesystem::remove(path);
  EXPECT_FALSE(LoadConfigFile(path.string(), agent, problems, text));
}

// Shapes and types that no message of ours has yet, declared as a .proto file would declare them.
constexpr const char* kSampleFile = R"pb(
  name: "sample.proto"
  package: "sample"
  dependency: "labrack/v1/field.proto"
  syntax: "proto3"
  message_type {
    name: "Sample"
    options {
      [labrack.v1.about] { help: "A sample." }
    }
    field {
      name: "words"
      number: 1
      label: LABEL_REPEATED
      type: TYPE_STRING
      options {
        [labrack.v1.field] { help: "Words." scalar_or_list: true pattern: "[a-z]+" }
      }
    }
    field {
      name: "small"
      number: 2
      label: LABEL_OPTIONAL
      type: TYPE_INT32
      options {
        [labrack.v1.field] { help: "Small." }
      }
    }
    field {
      name: "shares"
      number: 3
      label: LABEL_REPEATED
      type: TYPE_DOUBLE
      options {
        [labrack.v1.field] { help: "Shares." unit: UNIT_PERCENT max: "50%" }
      }
    }
    field {
      name: "flags"
      number: 4
      label: LABEL_REPEATED
      type: TYPE_BOOL
      options {
        [labrack.v1.field] { help: "Flags." }
      }
    }
    field {
      name: "sizes"
      number: 5
      label: LABEL_REPEATED
      type: TYPE_UINT64
      options {
        [labrack.v1.field] { help: "Sizes." unit: UNIT_BYTES }
      }
    }
    field {
      name: "numbers"
      number: 6
      label: LABEL_REPEATED
      type: TYPE_INT32
      options {
        [labrack.v1.field] { help: "Numbers." min: "-5" }
      }
    }
  })pb";

class SampleTest : public ::testing::Test {
 protected:
  SampleTest() : pool_(google::protobuf::DescriptorPool::generated_pool()) {
    static_cast<void>(v1::Field::descriptor());  // its file is in the pool from here on
    google::protobuf::FileDescriptorProto file;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kSampleFile, &file));
    descriptor_ = pool_.BuildFile(file)->FindMessageTypeByName("Sample");
    message_.reset(factory_.GetPrototype(descriptor_)->New());
  }
  bool Read(const std::string& text) {
    problems_ = {};
    Places places;
    EXPECT_TRUE(config::ReadYaml("t.yaml", text, config::Limits(), document_, problems_));
    return Bind(document_, document_.root, *message_, places, problems_);
  }
  std::string Format(const char* name) const {
    return FormatField(*message_, *descriptor_->FindFieldByName(name));
  }

  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_;
  const Descriptor* descriptor_ = nullptr;
  std::unique_ptr<google::protobuf::Message> message_;
  config::Document document_;
  config::Problems problems_;
};

TEST_F(SampleTest, OneTextMayStandForAList) {
  ASSERT_TRUE(Read("words: one\n"));
  EXPECT_EQ(Format("words"), "[one]");
  ASSERT_TRUE(Read("words: [one, two]\n"));
  EXPECT_EQ(Format("words"), "[one, two]");
  EXPECT_FALSE(Read("words: One\n"));
  EXPECT_FALSE(Read("words: {a: b}\n"));
  EXPECT_THAT(SchemaJson(*descriptor_, "t"), HasSubstr("anyOf"));
}

TEST_F(SampleTest, ListsOfEveryTypeAreReadFormattedAndChecked) {
  ASSERT_TRUE(
      Read("shares: [7%, 12.5%]\nflags: [true, false]\nsizes: [4KiB, 1GB]\n"
           "numbers: [-5, 7]\nsmall: -2147483648\n"));
  EXPECT_EQ(Format("shares"), "[7%, 12.5%]");
  EXPECT_EQ(Format("flags"), "[true, false]");
  EXPECT_EQ(Format("sizes"), "[4KiB, 1GB]");
  EXPECT_EQ(Format("numbers"), "[-5, 7]");
  EXPECT_EQ(Format("small"), "-2147483648");
  EXPECT_THAT(Check(*message_), IsEmpty());
  const auto* shares = descriptor_->FindFieldByName("shares");
  message_->GetReflection()->AddDouble(message_.get(), shares, 0.75);
  EXPECT_THAT(Check(*message_), ElementsAre("shares[2]: 75% is too large; it must be at most 50%"));
}

TEST_F(SampleTest, TheTypeBehindAFieldBoundsIt) {
  EXPECT_FALSE(Read("small: 2147483648\nnumbers: [-6, 1, 99999999999]\n"));
  EXPECT_THAT(Codes(problems_), ElementsAre("LR207", "LR207", "LR207"));
}

// Every declaration below `message`, once.
void CheckDeclarations(const Descriptor& message, std::set<const Descriptor*>& seen) {
  if (!seen.insert(&message).second) return;
  EXPECT_FALSE(AboutOf(message).help().empty()) << message.full_name();
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const v1::Field& options = OptionsOf(field);
    SCOPED_TRACE(field.full_name());
    EXPECT_TRUE(field.options().HasExtension(v1::field)) << "declare it, or hide it";
    EXPECT_FALSE(options.help().empty());
    EXPECT_NO_THROW(std::regex(options.pattern()));
    for (const std::string& text : {options.default_value(), options.min(), options.max()}) {
      if (text.empty()) continue;
      const Result<Scalar> value = ParseScalar(field, text);
      ASSERT_TRUE(value) << value.error().ToString();
      EXPECT_EQ(OutOfBounds(field, *value), std::nullopt) << text;
      EXPECT_TRUE(MatchesPattern(field, *value)) << text;
      EXPECT_EQ(FormatScalar(field, *value), text) << "not as it is printed";
    }
    EXPECT_FALSE(options.required() && !options.default_value().empty());
    if (!options.default_value().empty()) EXPECT_FALSE(field.is_repeated());
    if (field.is_map()) continue;
    if (field.message_type() != nullptr) CheckDeclarations(*field.message_type(), seen);
    if (field.enum_type() != nullptr) {
      EXPECT_EQ(ChoiceNames(*field.enum_type()).size(),
                static_cast<std::size_t>(field.enum_type()->value_count()) - 1);
    }
  }
}

TEST(DeclarationsTest, AreRightInThemselves) {
  std::set<const Descriptor*> seen;
  CheckDeclarations(*v1::Playbook::descriptor(), seen);
  CheckDeclarations(*v1::ControllerConfig::descriptor(), seen);
  CheckDeclarations(*v1::AgentConfig::descriptor(), seen);
  EXPECT_GT(seen.size(), 25u);
}

}  // namespace
}  // namespace labrack::fields
