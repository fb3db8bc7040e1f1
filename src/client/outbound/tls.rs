//! TLS to a server: its certificate is verified for the name in the URL, by roots that the platform trusts.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

/// Who vouches for a server.
#[derive(Debug, Clone)]
pub enum Trust {
    /// Whom the platform trusts: where it has files of roots, `SSL_CERT_FILE` and `SSL_CERT_DIR` replace them.
    Platform,
    /// These alone.
    Roots(Arc<RootCertStore>),
}

static PLATFORM: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();

/// A connector that trusts them. The platform's roots are read once.
pub(super) async fn connector(trust: &Trust) -> io::Result<TlsConnector> {
    let config = match trust {
        Trust::Platform => {
            let read = || async {
                tokio::task::spawn_blocking(platform).await.map_err(io::Error::other)?.map_err(io::Error::other)
            };
            Arc::clone(PLATFORM.get_or_try_init(read).await?)
        }
        Trust::Roots(roots) => {
            let config = versions()?.with_root_certificates(Arc::clone(roots)).with_no_client_auth();
            Arc::new(speaking_http_1(config))
        }
    };
    Ok(TlsConnector::from(config))
}

/// The name that a certificate has to be for.
pub(super) fn name(host: &str) -> io::Result<ServerName<'static>> {
    ServerName::try_from(host.to_owned()).map_err(io::Error::other)
}

fn versions() -> io::Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>> {
    ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)
}

fn platform() -> io::Result<Arc<ClientConfig>> {
    let verifier = Verifier::new(Arc::new(default_provider())).map_err(io::Error::other)?;
    // "Dangerous" is what rustls calls any verifier that is not its own; this one asks the platform.
    let config = versions()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    Ok(Arc::new(speaking_http_1(config)))
}

fn speaking_http_1(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}
