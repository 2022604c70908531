#include <set>

#include "proto/fields/declaration.h"
#include "proto/fields/fields.h"
#include "proto/fields/scalar.h"
#include "storage/base/config/source.h"

namespace labrack::fields {
namespace {

using google::protobuf::Message;
using google::protobuf::Reflection;

class Checker {
 public:
  void CheckMessage(const Message& message, const std::string& path);

  std::vector<std::string> Take() {
    if (more_ > 0) problems_.push_back("... and " + std::to_string(more_) + " more");
    return std::move(problems_);
  }

 private:
  void Add(const std::string& path, std::string_view what) {
    if (problems_.size() == kCheckedMax) {
      ++more_;
    } else {
      problems_.push_back((path.empty() ? std::string("message") : path) + ": " +
                          std::string(what));
    }
  }
  void CheckField(const Message& message, const FieldDescriptor& field, const std::string& path);
  void CheckItems(const Message& message, const FieldDescriptor& field, const std::string& path);
  void CheckScalar(const FieldDescriptor& field, const Scalar& value, const std::string& path);

  std::vector<std::string> problems_;
  std::size_t more_ = 0;
};

std::string Join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

void Checker::CheckScalar(const FieldDescriptor& field, const Scalar& value,
                          const std::string& path) {
  const auto* choice = std::get_if<const EnumValueDescriptor*>(&value);
  if (choice != nullptr && (*choice == nullptr || ChoiceName(**choice).empty())) {
    return Add(path, "is none of " + NameList(ChoiceNames(*field.enum_type()), "and"));
  }
  if (const auto wrong = OutOfBounds(field, value)) {
    const std::string bounds = BoundsText(field);
    return Add(path, FormatScalar(field, value) + " is " + std::string(*wrong) +
                         (bounds.empty() ? "" : "; it must be " + bounds));
  }
  if (!MatchesPattern(field, value)) {
    Add(path, config::Quote(std::get<std::string>(value)) + " does not match " +
                  OptionsOf(field).pattern());
  }
}

void Checker::CheckItems(const Message& message, const FieldDescriptor& field,
                         const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, &field);
  const auto count = static_cast<std::uint32_t>(size);
  if (count > ItemsMaxOf(field)) {
    return Add(path, "holds " + std::to_string(count) + " items; at most " +
                         std::to_string(ItemsMaxOf(field)) + " are taken");
  }
  const std::uint32_t min = OptionsOf(field).items_min();
  // An optional list that is not there is no list that is too short.
  if (count < min && (count > 0 || OptionsOf(field).required())) {
    return Add(path, "holds " + std::to_string(count) + " items; at least " + std::to_string(min) +
                         " are needed");
  }
  if (field.is_map()) return;
  std::set<std::string> names;
  for (int i = 0; i < size; ++i) {
    const std::string item_path = path + "[" + std::to_string(i) + "]";
    if (KindOf(field) != Kind::kMessage) {
      CheckScalar(field, GetItem(message, field, i), item_path);
      continue;
    }
    const Message& item = reflection.GetRepeatedMessage(message, &field, i);
    if (ShapeOf(field) != Shape::kKeyed) {
      CheckMessage(item, item_path);
      continue;
    }
    const Scalar name = GetScalar(item, NameField(field));
    const std::string& text = std::get<std::string>(name);
    CheckScalar(NameField(field), name, item_path + ".name");
    if (!names.insert(text).second) Add(item_path + ".name", "`" + text + "` is there twice");
    CheckMessage(item, MatchesPattern(NameField(field), name) ? Join(path, text) : item_path);
  }
}

void Checker::CheckField(const Message& message, const FieldDescriptor& field,
                         const std::string& path) {
  if (field.is_repeated()) return CheckItems(message, field, path);
  const Reflection& reflection = *message.GetReflection();
  const v1::Field& options = OptionsOf(field);
  if (KindOf(field) == Kind::kMessage) {
    if (reflection.HasField(message, &field)) {
      CheckMessage(reflection.GetMessage(message, &field), path);
    } else if (options.required()) {
      Add(path, "is missing");
    }
    return;
  }
  const Scalar value = GetScalar(message, field);
  if (IsZero(value)) {
    if (options.required()) return Add(path, "is missing");
    // An empty text may be meant: `http_listen: ""`.
    const bool text = KindOf(field) == Kind::kText;
    if (options.default_value().empty() || text) return;
  }
  CheckScalar(field, value, path);
}

void Checker::CheckMessage(const Message& message, const std::string& path) {
  const Descriptor& descriptor = *message.GetDescriptor();
  const std::vector<const FieldDescriptor*> fields = WritableFields(descriptor);
  if (AboutOf(descriptor).one_of()) {
    int set = 0;
    for (const FieldDescriptor* field : fields) {
      if (message.GetReflection()->HasField(message, field)) ++set;
    }
    if (set != 1)
      return Add(path, "must hold one of " + NameList(WritableNames(descriptor), "and"));
  }
  for (const FieldDescriptor* field : fields) {
    CheckField(message, *field, Join(path, field->name()));
  }
}

}  // namespace

std::vector<std::string> Check(const Message& message) {
  Checker checker;
  checker.CheckMessage(message, "");
  return checker.Take();
}

}  // namespace labrack::fields
