//! The manifests of `deploy/k8s-insecure`, and of `deploy/k8s`, which builds on them, fit the program and
//! each other.

use std::collections::{BTreeMap, BTreeSet};

use forebay_access::{Needs, PAGES};
use forebay_config::Config;
use serde_json::Value;

use crate::{
    files::{STOP_SECONDS, at, configuration, documents, list, read, secret_files, text},
    manifests::{FOLDER, one},
};

const CONFIGURATION: &str = "deploy/k8s-insecure/forebay.toml";
const CONTAINER: &str = "/spec/template/spec/containers/0";

/// The container's configuration, in the first pod of the namespace.
fn of_container(workload: &Value) -> Config {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    let pod = |field: &str| match field {
        "metadata.name" => "forebay-0".to_owned(),
        "metadata.namespace" => "forebay".to_owned(),
        other => panic!("{other}"),
    };
    for entry in at(workload, CONTAINER)["env"].as_array().into_iter().flatten() {
        let value = match entry.get("value") {
            // Kubernetes puts in what was set before.
            Some(value) => variables.iter().fold(value.as_str().unwrap().to_owned(), |value, (name, of)| {
                value.replace(&format!("$({name})"), of)
            }),
            None => pod(text(entry, "/valueFrom/fieldRef/fieldPath")),
        };
        variables.insert(text(entry, "/name").to_owned(), value);
    }
    configuration(CONFIGURATION, &variables)
}

/// Where a volume is mounted.
fn mount_of<'a>(workload: &'a Value, name: &str) -> &'a Value {
    let mounts = list(workload, &format!("{CONTAINER}/volumeMounts"));
    mounts.iter().find(|mount| mount["name"] == name).unwrap()
}

/// A container's ports by name.
fn ports(workload: &Value) -> BTreeMap<String, u64> {
    let ports = list(workload, &format!("{CONTAINER}/ports")).iter();
    ports.map(|port| (text(port, "/name").to_owned(), at(port, "/containerPort").as_u64().unwrap())).collect()
}

#[test]
fn each_node_says_where_its_pod_is_reached() {
    let nodes = one("StatefulSet", "forebay");
    let config = of_container(&nodes);
    assert_eq!(config.name.unwrap().as_str(), "forebay-0");
    let service = text(&nodes, "/spec/serviceName");
    assert_eq!(config.advertise, Some(format!("forebay-0.{service}.forebay.svc:7422")));
    assert_eq!(config.advertise_clients, Some(format!("forebay-0.{service}.forebay.svc:7420")));
    let served = [("grpc", &config.grpc), ("http", &config.http), ("peer", &config.peer)];
    let served = served.map(|(name, address)| {
        let port = address.strip_prefix("0.0.0.0:").unwrap_or_else(|| panic!("{name}: {address}"));
        (name.to_owned(), port.parse().unwrap())
    });
    assert_eq!(ports(&nodes), BTreeMap::from(served));
}

#[test]
fn there_is_a_shard_for_each_node() {
    let nodes = one("StatefulSet", "forebay");
    let config = of_container(&nodes);
    let replicas = at(&nodes, "/spec/replicas").as_u64().unwrap();
    assert!(!config.is_alone() && config.shards.len() as u64 >= replicas);
    // The migration has the same configuration.
    assert_eq!(of_container(&one("Job", "forebay-migrate")).shards, config.shards);
}

#[test]
fn configuration_and_secrets_are_where_the_program_looks() {
    let keys = one("Secret", "forebay");
    let keys = at(&keys, "/stringData").as_object().unwrap();
    for workload in [one("StatefulSet", "forebay"), one("Job", "forebay-migrate")] {
        let folder = |volume: &str| {
            let mounts = list(&workload, &format!("{CONTAINER}/volumeMounts"));
            let mount = mounts.iter().find(|mount| mount["name"] == volume).unwrap();
            text(mount, "/mountPath").to_owned()
        };
        let mounted: BTreeSet<_> = keys.keys().map(|key| format!("{}/{key}", folder("secrets"))).collect();
        assert_eq!(secret_files(CONFIGURATION), mounted);
        let looks = &crate::files::image_variables()["FOREBAY_CONFIG"];
        assert_eq!(*looks, format!("{}/forebay.toml", folder("config")));
        let volumes = list(&workload, "/spec/template/spec/volumes");
        assert_eq!(text(&volumes[0], "/configMap/name"), "forebay");
        assert_eq!(text(&volumes[1], "/secret/secretName"), "forebay");
        assert_eq!(text(&workload, &format!("{CONTAINER}/image")), "forebay");
    }
    let kustomization = &documents(&read(&format!("{FOLDER}/kustomization.yaml")))[0];
    assert_eq!(text(kustomization, "/configMapGenerator/0/name"), "forebay");
    assert_eq!(text(kustomization, "/images/0/name"), "forebay");
}

#[test]
fn by_default_every_port_has_a_certificate_of_the_secret() {
    let patch = &documents(&read("deploy/k8s/nodes.yaml"))[0];
    let nodes = one("StatefulSet", "forebay");
    assert_eq!(text(patch, "/metadata/name"), text(&nodes, "/metadata/name"));
    assert_eq!(text(patch, &format!("{CONTAINER}/name")), text(&nodes, &format!("{CONTAINER}/name")));
    let mount = &list(patch, &format!("{CONTAINER}/volumeMounts"))[0];
    let volume = &list(patch, "/spec/template/spec/volumes")[0];
    assert_eq!((&mount["name"], mount.get("subPath")), (&volume["name"], None));
    let config = of_container(patch);
    assert!(config.exposed.is_empty(), "{:?}", config.exposed);
    let tokens = config.access.tokens_file.unwrap();
    let (access, of) = (mount_of(patch, "access"), &list(patch, "/spec/template/spec/volumes")[1]);
    assert_eq!(tokens, std::path::Path::new(text(access, "/mountPath")).join("tokens.toml"));
    assert_eq!((text(of, "/name"), text(of, "/secret/secretName")), ("access", "forebay-access"));
    let tls = config.tls;
    let (server, peer) = (tls.server.unwrap(), tls.peer.unwrap());
    let file = |name: &str| std::path::Path::new(text(mount, "/mountPath")).join(name);
    assert_eq!((server.cert, server.key), (file("tls.crt"), file("tls.key")));
    assert_eq!((peer.cert, peer.key, peer.ca), (file("tls.crt"), file("tls.key"), file("ca.crt")));
    // The name that nodes share is that of the service that names each of them.
    let service = text(&nodes, "/spec/serviceName");
    assert_eq!(peer.name, Some(format!("{service}.forebay.svc")));
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert!(nodes.pointer(&format!("{CONTAINER}/{probe}/httpGet/path")).is_some(), "{probe}");
        assert_eq!(text(patch, &format!("{CONTAINER}/{probe}/httpGet/scheme")), "HTTPS");
    }
    let kustomization = &documents(&read("deploy/k8s/kustomization.yaml"))[0];
    assert_eq!(text(kustomization, "/resources/0"), "../k8s-insecure");
    for (index, file) in ["nodes.yaml", "services.yaml"].iter().enumerate() {
        assert_eq!(text(kustomization, &format!("/patches/{index}/path")), *file);
    }
}

#[test]
fn what_selects_nodes_finds_them_and_their_ports() {
    let nodes = one("StatefulSet", "forebay");
    let labels = at(&nodes, "/spec/template/metadata/labels");
    let (network, budget) = (one("NetworkPolicy", "forebay"), one("PodDisruptionBudget", "forebay"));
    let (direct, clients) = (one("Service", "forebay-nodes"), one("Service", "forebay"));
    for (manifest, selector) in [
        (&nodes, "/spec/selector/matchLabels"),
        (&nodes, "/spec/template/spec/topologySpreadConstraints/0/labelSelector/matchLabels"),
        (&network, "/spec/podSelector/matchLabels"),
        (&budget, "/spec/selector/matchLabels"),
        (&direct, "/spec/selector"),
        (&clients, "/spec/selector"),
    ] {
        assert_eq!(at(manifest, selector), labels, "{selector}");
    }
    // Nodes ask each other before they are ready; clients reach those that are.
    assert_eq!(text(&direct, "/metadata/name"), text(&nodes, "/spec/serviceName"));
    assert_eq!(text(&direct, "/spec/clusterIP"), "None");
    assert_eq!(direct["spec"]["publishNotReadyAddresses"], true);
    assert_ne!(clients["spec"]["publishNotReadyAddresses"], true);

    let ports = ports(&nodes);
    let mut named: Vec<&str> = Vec::new();
    for service in [&direct, &clients] {
        named.extend(list(service, "/spec/ports").iter().map(|port| text(port, "/targetPort")));
    }
    for rule in list(&network, "/spec/ingress") {
        named.extend(list(rule, "/ports").iter().map(|port| text(port, "/port")));
    }
    for (probe, page) in [("startup", "/healthz"), ("liveness", "/healthz"), ("readiness", "/readyz")] {
        let get = at(&nodes, &format!("{CONTAINER}/{probe}Probe/httpGet"));
        assert_eq!((text(get, "/path"), text(get, "/port")), (page, "http"));
        // Probes show no credentials.
        assert!(PAGES.iter().any(|row| (row.0, row.1) == (page, Needs::Nothing)), "{page}");
    }
    assert!(named.iter().all(|name| ports.contains_key(*name)), "{named:?}");
}

#[test]
fn pods_fit_what_their_namespace_admits() {
    let namespace = one("Namespace", "forebay");
    let label = "/metadata/labels/pod-security.kubernetes.io~1enforce";
    assert_eq!(text(&namespace, label), "restricted");
    for workload in [one("StatefulSet", "forebay"), one("Job", "forebay-migrate")] {
        let (pod, container) =
            (at(&workload, "/spec/template/spec/securityContext"), at(&workload, CONTAINER));
        assert_eq!(
            (&pod["runAsNonRoot"], text(pod, "/seccompProfile/type")),
            (&true.into(), "RuntimeDefault")
        );
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["capabilities"], serde_json::json!({ "drop": ["ALL"] }));
    }
}

#[test]
fn a_node_has_time_to_stop() {
    let seconds =
        at(&one("StatefulSet", "forebay"), "/spec/template/spec/terminationGracePeriodSeconds").as_u64();
    assert!(seconds.unwrap() > STOP_SECONDS);
}
