#include "support/servers/certificate.hpp"

namespace holdfast::tests {

Certificate make_certificate(const ServerFolder& folder, const std::string& name, const std::string& holder) {
    const std::string base = (folder.path() / name).string();
    Certificate made{base + ".crt", base + ".key"};
    run_as_server({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                   "-nodes", "-days", "2", "-subj", "/CN=holdfast test", "-addext", "subjectAltName=" + holder,
                   "-keyout", made.key, "-out", made.file});
    return made;
}

}  // namespace holdfast::tests
