// Goal: off loopback nobody attaches without a certificate of the lab's authority, and nobody as
// another agent than his own certificate names.
// Method: certificates made with openssl in a temporary directory, a controller on 0.0.0.0.
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "controller/fleet/identity.h"
#include "tests/e2e/controller_fixture.h"

namespace labrack::e2e {
namespace {

using testing::HasSubstr;

class TlsTest : public ControllerTest {
 protected:
  void SetUp() override {
    if (std::system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no openssl";
    ASSERT_TRUE(MakeAuthority("ca"));
    ASSERT_TRUE(MakeCertificate("ca", "controller", "DNS:localhost,IP:127.0.0.1"));
    config_.set_agents_listen("0.0.0.0:0");
    config_.mutable_tls()->set_ca(File("ca.pem"));
    config_.mutable_tls()->set_certificate(File("controller.pem"));
    config_.mutable_tls()->set_key(File("controller.key"));
  }

  std::string File(const std::string& name) const { return (directory_.path() / name).string(); }
  bool Openssl(const std::string& arguments) {
    return std::system(("openssl " + arguments + " >/dev/null 2>&1").c_str()) == 0;
  }
  bool MakeKey(const std::string& name) {
    return Openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out " +
                   File(name + ".key"));
  }
  bool MakeAuthority(const std::string& name) {
    return MakeKey(name) && Openssl("req -x509 -new -days 2 -subj /CN=" + name + " -key " +
                                    File(name + ".key") + " -out " + File(name + ".pem"));
  }
  bool MakeCertificate(const std::string& authority, const std::string& name,
                       const std::string& alternative_names) {
    std::ofstream(File(name + ".ext")) << "subjectAltName=" << alternative_names << "\n";
    return MakeKey(name) &&
           Openssl("req -new -subj /CN=" + name + " -key " + File(name + ".key") + " -out " +
                   File(name + ".csr")) &&
           Openssl("x509 -req -days 2 -CAcreateserial -in " + File(name + ".csr") + " -CA " +
                   File(authority + ".pem") + " -CAkey " + File(authority + ".key") + " -extfile " +
                   File(name + ".ext") + " -out " + File(name + ".pem"));
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(File(name)).rdbuf();
    return text.str();
  }

  // An agent called `id` with the certificate files called `certificate` (empty: none).
  void AddAgent(const std::string& id, const std::string& certificate) {
    const std::string address = controller_->agents_address();
    sim::SimAgentOptions options = AgentOptions(id);
    options.controller = "127.0.0.1" + address.substr(address.rfind(':'));
    options.target_name = "localhost";
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = Read("ca.pem");
    if (!certificate.empty()) {
      ssl.pem_private_key = Read(certificate + ".key");
      ssl.pem_cert_chain = Read(certificate + ".pem");
    }
    options.credentials = grpc::SslCredentials(ssl);
    fleet_->Add(std::move(options));
  }
  bool NobodyComesOnline() {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    return fleet_->online_count() == 0;
  }
};

TEST_F(TlsTest, OffLoopbackWithoutCertificatesTheControllerDoesNotStart) {
  config_.clear_tls();
  Result<std::unique_ptr<api::Controller>> controller = api::Controller::Start(config_);
  ASSERT_FALSE(controller);
  EXPECT_EQ(controller.error().code(), Errc::kPermissionDenied);
  EXPECT_THAT(controller.error().ToString(), HasSubstr("tls.ca, tls.certificate and tls.key"));
  EXPECT_FALSE(std::filesystem::exists(config_.state())) << "nothing was touched";
}

TEST_F(TlsTest, TheControlPortStaysOnLoopback) {
  config_.set_control_listen("0.0.0.0:0");
  Result<std::unique_ptr<api::Controller>> controller = api::Controller::Start(config_);
  ASSERT_FALSE(controller);
  EXPECT_THAT(controller.error().ToString(), HasSubstr("loopback"));
}

TEST_F(TlsTest, AFileThatIsNoCertificateIsSaid) {
  std::ofstream(File("ca.pem")) << "hello";
  Result<std::unique_ptr<api::Controller>> controller = api::Controller::Start(config_);
  ASSERT_FALSE(controller);
  EXPECT_THAT(controller.error().ToString(), HasSubstr("tls.ca"));
}

// A configuration that is wrong stays so: labrack-controller ends with 2, and is not started again.
TEST_F(TlsTest, AFileThatIsNotThereIsAWrongConfiguration) {
  config_.mutable_tls()->set_key("/nowhere/key.pem");
  Result<std::unique_ptr<api::Controller>> controller = api::Controller::Start(config_);
  ASSERT_FALSE(controller);
  EXPECT_EQ(controller.error().code(), Errc::kInvalidArgument);
  EXPECT_THAT(controller.error().ToString(), testing::StartsWith("tls.key: open /nowhere/key.pem"));
}

TEST_F(TlsTest, AnAgentWithItsOwnCertificateRunsTrials) {
  ASSERT_TRUE(MakeCertificate("ca", "st-1", "URI:labrack://lab/agent/st-1"));
  StartController();
  AddAgent("st-1", "st-1");
  ASSERT_TRUE(fleet_->WaitForOnline(1, std::chrono::seconds(20)));
  const std::string run_id = client().Submit(Playbook(1)).run_id();
  EXPECT_EQ(client().WaitForEnd(run_id).trials_valid(), 2U);
}

TEST_F(TlsTest, AnotherAgentsCertificateIsRefused) {
  ASSERT_TRUE(MakeCertificate("ca", "st-2", "URI:labrack://lab/agent/st-2"));
  StartController();
  AddAgent("st-1", "st-2");
  EXPECT_TRUE(NobodyComesOnline());
  EXPECT_THAT(fleet_->history().last_refusal, HasSubstr("the certificate is of agent `st-2`"));
}

TEST_F(TlsTest, ACertificateWithoutOrWithTwoAgentsIsRefused) {
  ASSERT_TRUE(MakeCertificate("ca", "none", "DNS:st-1"));
  ASSERT_TRUE(
      MakeCertificate("ca", "two", "URI:labrack://lab/agent/st-3,URI:labrack://lab/agent/st-4"));
  StartController();
  AddAgent("st-1", "none");
  AddAgent("st-3", "two");
  EXPECT_TRUE(NobodyComesOnline());
  EXPECT_GE(fleet_->history().refusals, 2U);
}

TEST_F(TlsTest, NoCertificateAndAForeignOneDoNotConnect) {
  ASSERT_TRUE(MakeAuthority("foreign"));
  ASSERT_TRUE(MakeCertificate("foreign", "st-5", "URI:labrack://lab/agent/st-5"));
  StartController();
  AddAgent("st-1", "");
  AddAgent("st-5", "st-5");
  EXPECT_TRUE(NobodyComesOnline());
  EXPECT_EQ(client().Hosts().hosts_size(), 0);
}

TEST(IdentityTest, UrisNameExactlyOneAgent) {
  EXPECT_EQ(fleet::AgentOfUris({"labrack://lab/agent/st-1"}).value(), "st-1");
  EXPECT_EQ(fleet::AgentOfUris({"https://x", "labrack://lab/agent/st-1"}).value(), "st-1");
  for (const char* wrong : {"labrack:///agent/st-1", "labrack://lab/st-1", "labrack://lab/agent/",
                            "labrack://lab/agent/a/b", "spiffe://lab/agent/st-1"}) {
    EXPECT_FALSE(fleet::AgentOfUris({wrong})) << wrong;
  }
}

TEST(IdentityTest, AddressesAreTakenApart) {
  EXPECT_TRUE(fleet::ParseListenAddress("127.0.0.1:1", "x")->loopback());
  EXPECT_TRUE(fleet::ParseListenAddress("[::1]:1", "x")->loopback());
  EXPECT_TRUE(fleet::ParseListenAddress("localhost:1", "x")->loopback());
  EXPECT_FALSE(fleet::ParseListenAddress("0.0.0.0:1", "x")->loopback());
  EXPECT_FALSE(fleet::ParseListenAddress("127.evil.example:1", "x")->loopback());
  EXPECT_EQ(fleet::ParseListenAddress("[::1]:7", "x")->text(), "[::1]:7");
  for (const char* wrong : {"", "127.0.0.1", ":1", "127.0.0.1:", "127.0.0.1:70000", "a:b"}) {
    EXPECT_FALSE(fleet::ParseListenAddress(wrong, "agents_listen")) << wrong;
  }
}

}  // namespace
}  // namespace labrack::e2e
