"""What Li, Tsang & Zhou (2013) print in Tables 2 to 5: ``None`` where they had no result after 24 hours."""

METHODS = ("svm", "dt", "nn", "all", "lin", "rbf", "cost lin", "cost rbf")

# CAPO with the auxiliary svm (CVM), dt, nn and all three, SVM-perf linear and RBF, SVM with a cost model linear and RBF
TABLE2 = {
    ("IJCNN1", "Accuracy"): (0.9540, 0.9702, 0.9150, 0.9703, 0.9193, 0.9658, None, None),
    ("IJCNN1", "F1"): (0.7620, 0.8473, 0.5753, 0.8468, 0.5565, None, None, None),
    ("IJCNN1", "PRBEP"): (0.7723, 0.8470, 0.5692, 0.8605, 0.6016, None, None, None),
    ("IJCNN1", "AUC"): (0.9607, 0.9734, 0.9198, 0.9810, 0.9180, None, None, None),
    ("Mitfaces", "Accuracy"): (0.9842, 0.9458, 0.9696, 0.9841, 0.9727, 0.9840, 0.9733, None),
    ("Mitfaces", "F1"): (0.4658, 0.1605, 0.2281, 0.4514, 0.2056, None, 0.2015, None),
    ("Mitfaces", "PRBEP"): (0.5127, 0.1864, 0.2500, 0.4873, 0.2140, None, 0.2309, None),
    ("Mitfaces", "AUC"): (0.9148, 0.7991, 0.8368, 0.9137, 0.8533, None, 0.8450, None),
    ("Reuters", "Accuracy"): (0.9745, 0.9664, 0.9715, 0.9739, 0.9727, 0.9727, 0.9724, 0.9721),
    ("Reuters", "F1"): (0.7730, 0.6973, 0.7455, 0.7731, 0.7375, None, 0.7599, 0.7540),
    ("Reuters", "PRBEP"): (0.7654, 0.7207, 0.7151, 0.7765, 0.7598, None, 0.7709, 0.7598),
    ("Reuters", "AUC"): (0.9870, 0.9842, 0.9868, 0.9838, 0.9878, None, 0.9872, 0.9873),
    ("Splice", "Accuracy"): (0.8947, 0.9347, 0.9651, 0.9664, 0.8451, 0.8947, 0.8446, 0.8975),
    ("Splice", "F1"): (0.8955, 0.9371, 0.9659, 0.9512, 0.8451, None, 0.8487, 0.8990),
    ("Splice", "PRBEP"): (0.8762, 0.9363, 0.9576, 0.9584, 0.8532, None, 0.8523, 0.9036),
    ("Splice", "AUC"): (0.9457, 0.9760, 0.9836, 0.9852, 0.9304, None, 0.9267, 0.9639),
    ("USPS*", "Accuracy"): (0.9691, 0.9233, 0.8520, 0.9676, 0.8411, 0.9706, None, None),
    ("USPS*", "F1"): (0.9611, 0.9060, 0.8188, 0.9617, 0.8012, None, None, None),
    ("USPS*", "PRBEP"): (0.9500, 0.9000, 0.8195, 0.9573, 0.7963, None, None, None),
    ("USPS*", "AUC"): (0.9731, 0.9557, 0.9137, 0.9843, 0.9052, None, None, None),
}

# the auxiliaries themselves, in brackets there
AUXILIARIES = {
    ("IJCNN1", "Accuracy"): (0.9521, 0.9702, 0.8914),
    ("IJCNN1", "F1"): (0.7544, 0.8471, 0.2643),
    ("IJCNN1", "PRBEP"): (0.7376, 0.8364, 0.3222),
    ("IJCNN1", "AUC"): (0.8839, 0.9464, 0.8658),
    ("Mitfaces", "Accuracy"): (0.9839, 0.9302, 0.9067),
    ("Mitfaces", "F1"): (0.4665, 0.1342, 0.1768),
    ("Mitfaces", "PRBEP"): (0.4979, 0.1822, 0.1059),
    ("Mitfaces", "AUC"): (0.9148, 0.7201, 0.7979),
    ("Reuters", "Accuracy"): (0.9745, 0.9660, 0.9315),
    ("Reuters", "F1"): (0.7729, 0.6890, 0.1439),
    ("Reuters", "PRBEP"): (0.7709, 0.6871, 0.3743),
    ("Reuters", "AUC"): (0.9363, 0.9144, 0.8322),
    ("Splice", "Accuracy"): (0.8947, 0.9347, 0.9651),
    ("Splice", "F1"): (0.8943, 0.9362, 0.9659),
    ("Splice", "PRBEP"): (0.8691, 0.9355, 0.9558),
    ("Splice", "AUC"): (0.8992, 0.9307, 0.9667),
    ("USPS*", "Accuracy"): (0.9689, 0.9233, 0.7798),
    ("USPS*", "F1"): (0.9613, 0.9053, 0.7486),
    ("USPS*", "PRBEP"): (0.9488, 0.8898, 0.7500),
    ("USPS*", "AUC"): (0.9658, 0.9179, 0.7582),
}

# CPU seconds for choosing the parameters; a cost-model SVM is chosen once for all four measures
TABLE3 = {
    ("IJCNN1", "Accuracy"): (9.3, 11.1, 9.9, 11.2, 10.0, 96.6, None, None),
    ("IJCNN1", "F1"): (9451.5, 9011.5, 14809.3, 6652.8, 12281.3, None, None, None),
    ("IJCNN1", "PRBEP"): (1507.9, 1033.3, 2276.2, 1005.1, 2034.0, None, None, None),
    ("IJCNN1", "AUC"): (88.0, 38.0, 124.0, 40.6, 112.6, None, None, None),
    ("Mitfaces", "Accuracy"): (9.5, 11.2, 23.7, 9.0, 27.2, 27089.3, 6114.7, None),
    ("Mitfaces", "F1"): (465.6, 802.5, 1211.5, 379.0, 1189.4, None, 6114.7, None),
    ("Mitfaces", "PRBEP"): (126.9, 183.4, 241.6, 119.6, 234.4, None, 6114.7, None),
    ("Mitfaces", "AUC"): (37.7, 48.5, 74.0, 30.6, 79.3, None, 6114.7, None),
    ("Reuters", "Accuracy"): (5.7, 2.1, 2.6, 3.9, 2.3, 39813.1, 283.1, 53113.8),
    ("Reuters", "F1"): (68.7, 67.4, 64.3, 67.6, 60.2, None, 283.1, 53113.8),
    ("Reuters", "PRBEP"): (10.8, 13.1, 11.9, 10.6, 11.4, None, 283.1, 53113.8),
    ("Reuters", "AUC"): (18.9, 8.6, 8.7, 3.9, 8.1, None, 283.1, 53113.8),
    ("Splice", "Accuracy"): (4.0, 484.5, 697.1, 2.0, 3602.4, 2187.1, 16297.6, 464.2),
    ("Splice", "F1"): (168.2, 592.3, 3373.9, 58.4, 10201.5, None, 16297.6, 464.2),
    ("Splice", "PRBEP"): (11.8, 17.0, 27.3, 6.8, 82.6, None, 16297.6, 464.2),
    ("Splice", "AUC"): (2.0, 3.3, 7.3, 1.2, 42.0, None, 16297.6, 464.2),
    ("USPS*", "Accuracy"): (24.6, 35.4, 215.3, 15.6, 221.5, 24026.7, None, None),
    ("USPS*", "F1"): (2199.0, 2605.4, 5429.9, 1514.8, 5225.9, None, None, None),
    ("USPS*", "PRBEP"): (626.2, 566.1, 938.9, 404.4, 895.2, None, None, None),
    ("USPS*", "AUC"): (155.6, 139.9, 424.3, 76.1, 452.5, None, None, None),
}

# CPU seconds for training CVM, C4.5 and the RBF network
TABLE4 = {
    "IJCNN1": (1.6, 19.9, 20.2),
    "Mitfaces": (2.8, 66.1, 63.6),
    "Reuters": (2.1, 1689.7, 1771.0),
    "Splice": (0.1, 0.4, 0.9),
    "USPS*": (2.3, 45.9, 37.1),
}

# five CVMs with different kernels: CAPO, and the weighted ensemble without delta function
TABLE5 = {
    ("IJCNN1", "Accuracy"): (0.9712, 0.9632),
    ("IJCNN1", "F1"): (0.8438, 0.8439),
    ("IJCNN1", "PRBEP"): (0.8472, 0.8000),
    ("IJCNN1", "AUC"): (0.9892, 0.9837),
    ("Mitfaces", "Accuracy"): (0.9842, 0.9837),
    ("Mitfaces", "F1"): (0.4563, 0.4446),
    ("Mitfaces", "PRBEP"): (0.4831, 0.4767),
    ("Mitfaces", "AUC"): (0.9097, 0.9097),
    ("Reuters", "Accuracy"): (0.9715, 0.9715),
    ("Reuters", "F1"): (0.7429, 0.7181),
    ("Reuters", "PRBEP"): (0.7598, 0.7318),
    ("Reuters", "AUC"): (0.9847, 0.7979),
    ("Splice", "Accuracy"): (0.8952, 0.8938),
    ("Splice", "F1"): (0.9024, 0.9024),
    ("Splice", "PRBEP"): (0.9010, 0.8912),
    ("Splice", "AUC"): (0.9486, 0.9022),
    ("USPS*", "Accuracy"): (0.9706, 0.9701),
    ("USPS*", "F1"): (0.9659, 0.9644),
    ("USPS*", "PRBEP"): (0.9634, 0.9622),
    ("USPS*", "AUC"): (0.9823, 0.9705),
}
