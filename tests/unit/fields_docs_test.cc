// Goal: what editors and people read about fields says the same as the binder does. Method: a small
// JSON Schema validator over the same texts as the binder, verdict against verdict; the shipped
// schema and reference against what is generated; explanations as golden files.
#include <map>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "labrack/v1/config.pb.h"
#include "labrack/v1/playbook.pb.h"
#include "proto/fields/fields.h"
#include "tests/unit/golden.h"
#include "tests/unit/json_schema.h"

namespace labrack::fields {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// A YAML tree as an editor sees it: plain scalars typed by their look (YAML 1.2, core schema).
Json AsJson(const config::Node& node) {
  switch (node.kind) {
    case config::Node::Kind::kList: {
      Json list = Json::array();
      for (const config::Node& item : node.items) list.push_back(AsJson(item));
      return list;
    }
    case config::Node::Kind::kMap: {
      Json map = Json::object();
      for (const config::Node::Entry& entry : node.entries) map[entry.key] = AsJson(entry.value);
      return map;
    }
    case config::Node::Kind::kScalar:
      break;
  }
  if (node.quoted) return node.text;
  if (node.text.empty() || node.text == "null" || node.text == "~") return nullptr;
  if (node.text == "true" || node.text == "false") return node.text == "true";
  static const std::regex integer("[-+]?[0-9]+");
  static const std::regex real("[-+]?(\\.[0-9]+|[0-9]+(\\.[0-9]*)?)([eE][-+]?[0-9]+)?");
  if (node.text.size() > 30) return node.text;
  if (std::regex_match(node.text, integer)) return std::stoll(node.text);
  if (std::regex_match(node.text, real)) return std::stod(node.text);
  return node.text;
}

struct Verdicts {
  std::string schema;  // what the schema finds wrong
  std::string binder;
};

Verdicts Judge(const std::string& text) {
  static const JsonSchema schema(Json::parse(SchemaJson(*v1::Playbook::descriptor(), "playbook")));
  config::Document document;
  config::Problems problems;
  EXPECT_TRUE(config::ReadYaml("t.yaml", text, config::Limits(), document, problems)) << text;
  v1::Playbook playbook;
  Places places;
  Bind(document, document.root, playbook, places, problems);
  return {schema.FirstFault(AsJson(document.root)),
          config::RenderAll(problems, text, config::Colour::kNever)};
}

constexpr const char* kHead = "playbook: p\nstacks: {one: {host: {dir: {}}}}\n";
constexpr const char* kWork = "workloads: {pages: {sync_pages: {}}}\n";

TEST(SchemaTest, AcceptsWhatTheBinderAccepts) {
  const std::vector<std::string> texts{
      std::string(kHead) + kWork,
      std::string(kHead) + kWork + "trials: \"6\"\nmargin: 2.5%\nsummary: 12\nbase: one\n",
      std::string(kHead) + kWork + "hosts: {match: {rack: 07, ok: true}, min: 2}\n",
      std::string(kHead) + kWork + "vars: {size: 4KiB, n: 3}\nmatrix: {b: [1, 2], c: [4KiB]}\n",
      std::string(kHead) + kWork + "gates: [{faster: a, than: b, by: 1.5x}, {verified: all}]\n",
      std::string(kHead) + kWork + "exclude: [{with: {b: 1}}]\ndisks: {count: 2, size: 1.5GiB}\n",
      std::string(kHead) +
          "workloads:\n"
          "  r: {random: {read: 70%, direct: \"false\", rate: 12.5, stop: {operations: 5}}}\n"
          "  f: {files: {steps: [create, stat]}}\n"
          "  e: {exec: {command: [a, 5, true], figures: {x: {match: b, better: lower}}}}\n",
  };
  for (const std::string& text : texts) {
    const Verdicts verdicts = Judge(text);
    EXPECT_EQ(verdicts.binder, "") << text;
    EXPECT_EQ(verdicts.schema, "") << text;
  }
}

TEST(SchemaTest, TakesPlaceholdersWhereTheyAreReplaced) {
  const std::string text =
      "playbook: p\n"
      "disks: {count: \"${n}\", size: \"${size}\", kind: \"${kind}\"}\n"
      "stacks:\n"
      "  one: {host: {btrfs: {data: \"${profile}\", mount_options: [\"compress=${c}\"]}}}\n"
      "workloads:\n"
      "  r:\n"
      "    random:\n"
      "      block: ${block}\n"
      "      direct: ${direct}\n"
      "      depth: ${depth}\n"
      "      read: ${share}%\n"
      "      rate: ${rate}\n"
      "      stop: {duration: \"${time}\"}\n";
  EXPECT_EQ(Judge(text).schema, "");
  EXPECT_THAT(Judge(std::string(kHead) + kWork + "trials: ${n}\n").schema, HasSubstr(".trials"));
  EXPECT_THAT(Judge(std::string(kHead) + kWork + "margin: ${n}\n").schema, HasSubstr(".margin"));
}

TEST(SchemaTest, RefusesWhatTheBinderRefusesButWhatLiesBeyondIt) {
  const std::map<std::string, bool> texts{
      // text after the head -> whether the schema sees it
      {"workloads: {p: {stream: {blok: 1}}}\n", true},
      {"workloads: {p: {stream: {}, copy: {}}}\n", true},
      {"workloads: {p: {}}\n", true},
      {"workloads: {p: {stream: {block: 4k}}}\n", true},
      {"workloads: {p: {stream: {block: 4096}}}\n", true},
      {"workloads: {p: {stream: {data: noise}}}\n", true},
      {"workloads: {p: {stream: {direct: yes}}}\n", true},
      {"workloads: {p: {exec: {}}}\n", true},
      {"workloads: {p: {exec: {command: []}}}\n", true},
      {"workloads: {P: {stream: {}}}\n", true},
      {"workloads: [1]\n", true},
      {std::string(kWork) + "trials: 0\n", true},
      {std::string(kWork) + "trials: 6.5\n", true},
      {std::string(kWork) + "margin: 3\n", true},
      {std::string(kWork) + "summary:\n", true},
      {std::string(kWork) + "gates: {}\n", true},
      {std::string(kWork) + "lost_after: 5m\n", true},
      {"", true},
      // Bounds of values with units, and numbers in quotes:
      {"workloads: {p: {stream: {block: 1TiB}}}\n", false},
      {std::string(kWork) + "trials: \"0\"\n", false},
  };
  for (const auto& [text, seen] : texts) {
    const Verdicts verdicts = Judge(kHead + text);
    EXPECT_NE(verdicts.binder, "") << text;
    EXPECT_EQ(!verdicts.schema.empty(), seen) << text << verdicts.schema;
  }
}

TEST(SchemaTest, SaysDescriptionsAndDefaults) {
  const Json schema = Json::parse(SchemaJson(*v1::Playbook::descriptor(), "labrack playbook"));
  EXPECT_EQ(schema["$schema"], "http://json-schema.org/draft-07/schema#");
  EXPECT_EQ(schema["title"], "labrack playbook");
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(schema["properties"]["trials"]["default"], 6);
  EXPECT_EQ(schema["properties"]["margin"]["default"], "3%");
  const Json& random = schema["properties"]["workloads"]["additionalProperties"]["properties"]
                             ["random"]["properties"];
  EXPECT_EQ(random["direct"]["default"], true);
  EXPECT_THAT(random["block"]["description"].get<std::string>(),
              HasSubstr("Bytes per operation. Bounds: 512B to 16MiB."));
  EXPECT_THAT(random["cache"]["description"].get<std::string>(), HasSubstr("- cold: "));
  EXPECT_FALSE(schema.dump().find("\"name\"") != std::string::npos) << "hidden fields stay hidden";
}

TEST(ShippedTest, SchemaAndReferenceAreWhatIsGenerated) {
  SCOPED_TRACE("after a change of fields, write them anew: LABRACK_UPDATE_GOLDEN=1 " +
               std::string("build/release/tests/fields_docs_test"));
  const auto& playbook = *v1::Playbook::descriptor();
  ExpectGolden("../../../playbooks/schema.json", SchemaJson(playbook, "labrack playbook"));
  ExpectGolden("../../../playbooks/reference.md", ReferenceMarkdown(playbook));
}

TEST(ReferenceTest, HasARowForEveryField) {
  for (const auto* root : {v1::Playbook::descriptor(), v1::ControllerConfig::descriptor(),
                           v1::AgentConfig::descriptor()}) {
    const std::string text = ReferenceMarkdown(*root);
    for (const std::string& path : FieldPaths(*root)) {
      EXPECT_THAT(text, HasSubstr("\n| `" + path.substr(path.rfind('.') + 1) + "` | ")) << path;
    }
    for (std::size_t at = 0; (at = text.find("\n|", at)) != std::string::npos; ++at) {
      const std::string row = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
      std::size_t bars = 0;
      for (std::size_t i = 0; i < row.size(); ++i) {
        bars += row[i] == '|' && (i == 0 || row[i - 1] != '\\') ? 1 : 0;
      }
      EXPECT_EQ(bars, 6u) << row;
    }
  }
}

TEST(FieldPathsTest, NamesAndItemsAreStars) {
  const std::vector<std::string> paths = FieldPaths(*v1::Playbook::descriptor());
  for (const char* path : {"playbook", "disks.size", "stacks", "stacks.*.host.ext4.mkfs_options",
                           "workloads.*.random.stop.duration", "gates.*.by", "vars", "matrix",
                           "workloads.*.exec.figures.*.match", "hosts.match"}) {
    EXPECT_THAT(paths, Contains(path));
  }
  EXPECT_THAT(paths, Not(Contains("stacks.*.name")));
  EXPECT_THAT(paths, Not(Contains("vars.*.value")));
}

TEST(ExplainTest, FindsFieldsByWholePathOrByItsEnd) {
  const auto& root = *v1::Playbook::descriptor();
  const std::string block = Explain(root, "workloads.*.random.block").value();
  ExpectGolden("explain_block.txt", block);
  EXPECT_EQ(Explain(root, "random.block"), block);
  EXPECT_EQ(Explain(root, "workloads.pages.random.block"), block);
  ExpectGolden("explain_host.txt", Explain(root, "stacks.*.host").value());
  ExpectGolden("explain_cache.txt", Explain(root, "random.cache").value());
  ExpectGolden("explain_several.txt", Explain(root, "block").value());
  EXPECT_THAT(Explain(root, "summary").value(), testing::StartsWith("summary\n"));
  EXPECT_THAT(Explain(root, "gates[0].by").value(), testing::StartsWith("gates.*.by\n"));
  for (const char* path : {"", "nothing", "random.nothing", "a.b.c.d.e.f.g", "..", "*"}) {
    EXPECT_EQ(Explain(root, path), std::nullopt) << path;
  }
  for (const std::string& path : FieldPaths(root)) {
    EXPECT_THAT(Explain(root, path).value(), testing::StartsWith(path + "\n"));
  }
}

}  // namespace
}  // namespace labrack::fields
