//! Reaching servers on loopback: names that change, certificates that do not hold.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const CA: &[u8] = include_bytes!("../../../tests/tls/ca.pem");
const KEY: &[u8] = include_bytes!("../../../tests/tls/key.pem");
const VALID: &[u8] = include_bytes!("../../../tests/tls/valid.pem");
const EXPIRED: &[u8] = include_bytes!("../../../tests/tls/expired.pem");
const SELF_SIGNED: &[u8] = include_bytes!("../../../tests/tls/self.pem");

/// A server that answers one request a connection, over TLS if it has a certificate; how many connected.
async fn server(certificate: Option<&[u8]>) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = certificate.map(|pem| {
        let chain = vec![CertificateDer::from_pem_slice(pem).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    });
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut stream: Box<dyn Stream> = match &acceptor {
                None => Box::new(stream),
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => Box::new(stream),
                    Err(_) => continue,
                },
            };
            let mut buffer = vec![0; 4096];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            let _ = stream.shutdown().await;
        }
    });
    (address, count)
}

fn roots() -> Trust {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CA).unwrap()).unwrap();
    Trust::Roots(Arc::new(roots))
}

/// A resolver that gives one answer after the other, the last for ever.
fn resolver(answers: Vec<Vec<SocketAddr>>) -> (Resolve, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let resolve: Resolve = Arc::new(move |_, _| {
        let number = counted.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
        let found = answers[number].clone();
        Box::pin(async move { Ok(found) })
    });
    (resolve, asked)
}

async fn get(origin: Origin, reach: Reach) -> Result<Bytes, Unanswered> {
    let pool = Pool::new(origin, reach);
    let request = Request::builder().uri("/").header("host", "x").body(Full::default()).unwrap();
    let (response, _sender) = pool.send(request).await?;
    Ok(collect(response, 100).await.unwrap())
}

fn named(host: &str, tls: bool, address: SocketAddr) -> (Origin, Reach) {
    let (resolve, _) = resolver(vec![vec![address]]);
    let reach = Reach { trust: roots(), resolve: Some(resolve), ..Reach::new(true) };
    (Origin { tls, host: host.to_owned(), port: address.port() }, reach)
}

#[tokio::test]
async fn a_certificate_that_an_authority_signed_for_the_name_is_taken() {
    let (address, _) = server(Some(VALID)).await;
    let (origin, reach) = named("server.test", true, address);
    assert_eq!(get(origin, reach).await.unwrap(), "ok");
}

#[tokio::test]
async fn a_certificate_that_is_expired_or_for_another_name_or_signed_by_itself_is_refused() {
    for (certificate, host, why) in [
        (EXPIRED, "server.test", "expired"),
        (VALID, "other.test", "not valid for name"),
        (SELF_SIGNED, "server.test", "UnknownIssuer"),
    ] {
        let (address, _) = server(Some(certificate)).await;
        let (origin, reach) = named(host, true, address);
        let Err(Unanswered::Unreachable(Unreachable::Handshake(error))) = get(origin, reach).await else {
            panic!("{why}: a handshake that fails was expected")
        };
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn the_platform_does_not_vouch_for_what_the_test_authority_signed() {
    let (address, _) = server(Some(VALID)).await;
    let (origin, reach) = named("server.test", true, address);
    let refused = get(origin, Reach { trust: Trust::Platform, ..reach }).await.unwrap_err();
    assert!(
        matches!(refused, Unanswered::Unreachable(Unreachable::Handshake(_) | Unreachable::Roots(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_private_address_is_refused_before_anything_is_connected_to() {
    let (address, connected) = server(None).await;
    for host in ["127.0.0.1", "2130706433", "127.1", "0.0.0.0", "::1", "::ffff:127.0.0.1", "localhost"] {
        let origin = Origin { tls: false, host: host.to_owned(), port: address.port() };
        let refused = get(origin, Reach::new(false)).await.unwrap_err();
        let expected = matches!(refused, Unanswered::Unreachable(Unreachable::Refused(_) | Unreachable::NoAddress(_)));
        assert!(expected, "{host}: {refused:?}");
    }
    assert_eq!(connected.load(Ordering::Relaxed), 0);
    let origin = Origin { tls: false, host: "127.0.0.1".to_owned(), port: address.port() };
    assert_eq!(get(origin, Reach::new(true)).await.unwrap(), "ok");
}

#[tokio::test]
async fn a_name_that_changes_after_it_was_checked_is_not_asked_for_again() {
    let (address, connected) = server(None).await;
    let public: SocketAddr = ([192, 0, 2, 1], 9).into();
    // 192.0.2.1 is refused as special, so what is connected to is known without a network.
    let (resolve, asked) = resolver(vec![vec![public], vec![address]]);
    let reach = Reach { resolve: Some(resolve), ..Reach::new(false) };
    let origin = Origin { tls: false, host: "rebinds.test".to_owned(), port: address.port() };
    assert!(get(origin, reach).await.is_err());
    assert_eq!((asked.load(Ordering::Relaxed), connected.load(Ordering::Relaxed)), (1, 0));
    // The first answer is the one that is connected to, whatever a second would be.
    let (resolve, asked) = resolver(vec![vec![address], vec![public]]);
    let reach = Reach { resolve: Some(resolve), ..Reach::new(true) };
    let origin = Origin { tls: false, host: "rebinds.test".to_owned(), port: 1 };
    assert_eq!(get(origin, reach).await.unwrap(), "ok");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_private_address_among_public_ones_is_passed_over() {
    let (address, connected) = server(None).await;
    let (resolve, _) = resolver(vec![vec![address, ([10, 0, 0, 1], 1).into()]]);
    let reach = Reach { resolve: Some(resolve), ..Reach::new(false) };
    let refused = get(Origin { tls: false, host: "x.test".to_owned(), port: 1 }, reach).await.unwrap_err();
    assert!(matches!(refused, Unanswered::Unreachable(Unreachable::Refused(_))), "{refused:?}");
    assert_eq!(connected.load(Ordering::Relaxed), 0);
}
