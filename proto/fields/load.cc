#include "proto/fields/fields.h"

namespace labrack::fields {

bool LoadConfigFile(const std::string& path, google::protobuf::Message& message,
                    config::Problems& problems, std::string& text) {
  config::Document document;
  bool right = config::ReadYamlFile(path, config::Limits(), document, problems);
  Places places;
  // What is wrong in its structure alone may hide more, so that all comes at once.
  if (document.checkable) right = Bind(document, document.root, message, places, problems) && right;
  text = std::move(document.text);
  return right;
}

}  // namespace labrack::fields
